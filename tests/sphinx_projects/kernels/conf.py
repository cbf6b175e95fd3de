project = "kernels"
extensions = ["texgen.sphinxext"]
texgen_execute = True
