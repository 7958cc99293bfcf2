"""What is known of integers without running anything: between which numbers they lie."""
