"""Objects of users' classes: operators and attributes, whose methods may have branches and loops."""
