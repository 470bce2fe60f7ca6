"""Settings that every test shares."""

from hypothesis import HealthCheck, settings

# The machines that run this suite share their cores, so a slow example says
# nothing about the code under test.
settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
