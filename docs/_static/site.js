// Two things: a filter over the catalogue's table, and pictures that open large. Without it the pages are whole.
"use strict";

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// The catalogue ------------------------------------------------------------------------------------------------------

function values(row, kind) {
  return [...row.classList].filter((c) => c.startsWith(kind + ":")).map((c) => c.slice(kind.length + 1));
}

// "64x128x16" or "64x16" against shapes such as "64xNx16" with their Ns
function fits(row, wanted) {
  const numbers = wanted.toLowerCase().replace(/×/g, "x").split(/[x,\s]+/).filter(Boolean);
  return values(row, "shape").some((value) => {
    const [shape, ns] = value.split(":");
    const modes = shape.split("x");
    const allowed = ns ? ns.split("-") : [];
    const match = (number, mode) => number === mode.toLowerCase() || (mode === "N" && allowed.includes(number)) || number === "*";
    return numbers.length >= modes.length
      ? numbers.length === modes.length && numbers.every((n, i) => match(n, modes[i]))
      : numbers.every((n) => modes.some((mode) => match(n, mode)));
  });
}

function addFilter(table) {
  const rows = [...table.tBodies[0].rows];
  const choices = (kind) => [...new Set(rows.flatMap((row) => values(row, kind)))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const select = (kind) => element("select", {}, element("option", { value: "", textContent: "all" }), ...choices(kind).map((v) => element("option", { value: v, textContent: v })));
  const arch = select("arch");
  const type = select("type");
  const shape = element("input", { type: "text", placeholder: "64x128x16", autocomplete: "off", spellcheck: false });
  const words = element("input", { type: "search", placeholder: "wgmma", autocomplete: "off", spellcheck: false });
  const count = element("p", { className: "catalogue-count" });
  count.setAttribute("role", "status");
  const label = (text, control) => element("label", {}, element("span", { textContent: text }), control);
  const form = element("form", { className: "catalogue-filter" }, label("Architecture", arch), label("Type", type), label("Shape M×N×K", shape), label("Words", words));
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the catalogue");

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const keep = (!arch.value || row.classList.contains("arch:" + arch.value))
        && (!type.value || row.classList.contains("type:" + type.value))
        && (!shape.value.trim() || fits(row, shape.value.trim()))
        && wanted.every((word) => text.includes(word));
      row.hidden = !keep;
      shown += keep;
    }
    count.textContent = `${shown} of ${rows.length} pages`;
  }

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  const around = table.closest(".table-wrapper") ?? table;
  around.before(form, count);
  apply();
}

// Pictures -----------------------------------------------------------------------------------------------------------

function openLarge(picture, name) {
  const dialog = element("dialog", { className: "large" });
  const inner = element("div", { className: "picture", tabIndex: 0 });
  const copy = picture.cloneNode(true);
  const svg = copy.matches("svg, img") ? copy : copy.querySelector("svg, img");
  svg.style.width = "";
  for (const part of svg.querySelectorAll("[id]")) part.removeAttribute("id");
  const holder = element("div", { className: "texgen-picture" }, svg);
  inner.append(holder);
  inner.setAttribute("role", "region");
  inner.setAttribute("aria-label", name);
  const close = element("button", { type: "button", className: "enlarge", textContent: "Close" });
  close.addEventListener("click", () => dialog.close());
  const bar = element("div", { className: "bar" }, close);
  dialog.append(bar, inner);
  dialog.setAttribute("aria-label", name);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}

function addEnlarge(figure) {
  const picture = figure.querySelector(".texgen-picture, img.texgen-card");
  if (!picture) return;
  const name = figure.querySelector("figcaption .caption-text")?.textContent ?? "Figure";
  const button = element("button", { type: "button", className: "enlarge", textContent: "Enlarge" });
  button.setAttribute("aria-label", "Enlarge: " + name);
  button.addEventListener("click", () => openLarge(picture, name));
  const links = figure.querySelector(".texgen-links");
  if (links) links.append(button);
  else picture.after(button);
}

// What scrolls can be scrolled by keyboard.
document.querySelectorAll(".highlight pre, .table-wrapper").forEach((box) => {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
document.querySelectorAll("table.catalogue-index").forEach(addFilter);
document.querySelectorAll("figure.texgen, div.figure.texgen").forEach(addEnlarge);
