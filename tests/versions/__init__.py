"""The wheel, not the checkout, under the oldest and the newest DSL and Python: ``python -m tests.versions`` (``make versions``)."""
