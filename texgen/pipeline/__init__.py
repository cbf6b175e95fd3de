"""Software pipelines in shared memory as plain data: a program of copies, waits, barriers and reads over a ring of stages.

``program`` builds and reads them, ``hazards`` judges them, ``steps`` says what each stage is at each step, ``spec`` holds the
lot as JSON, ``measured`` reads the clock stamps of a real run. Nothing here needs the DSL.
"""
