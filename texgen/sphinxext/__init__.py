"""Figures of layouts in Sphinx: ``extensions = ["texgen.sphinxext"]``.

Directives ``texgen:mma``, ``texgen:copy`` and ``texgen:layout`` draw any target that ``texgen render`` takes;
``texgen:atom`` (directive and role) names atoms and links to them; ``texgen:results`` shows what was measured. Settings are listed in ``texgen.sphinxext.settings``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from texgen import __version__
from texgen.sphinxext.settings import SETTINGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx: registers the domain, the nodes, the settings and the steps of a build."""
    from texgen.sphinxext import interactive, steps
    from texgen.sphinxext.charts import CHART, chart
    from texgen.sphinxext.domain import TexgenDomain
    from texgen.sphinxext.nodes import links, picture
    from texgen.sphinxext.visitors import LINKS, PICTURE

    for setting in SETTINGS:
        app.add_config_value(setting.name, setting.default, setting.rebuild, setting.accepted)
    app.add_domain(TexgenDomain)
    app.add_node(picture, **PICTURE)
    app.add_node(links, **LINKS)
    app.add_node(chart, **CHART)
    app.add_css_file(steps.STYLE)
    app.add_latex_package("tikz")
    app.connect("config-inited", steps.add_preamble)
    app.connect("builder-inited", steps.open_studio)
    app.connect("env-get-outdated", steps.outdated)
    app.connect("env-updated", steps.finish_forms)
    app.connect("html-page-context", interactive.add_script)
    app.connect("build-finished", steps.sweep)
    return {"version": __version__, "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
