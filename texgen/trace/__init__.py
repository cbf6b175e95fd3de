"""Programs of the CuTe DSL, documented as they are: recording what they build, running them, and the report."""
