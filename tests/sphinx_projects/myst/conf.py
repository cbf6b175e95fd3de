project = "myst"
extensions = ["myst_parser", "texgen.sphinxext"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
source_suffix = {".md": "markdown"}
numfig = True
