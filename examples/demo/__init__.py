"""The demo: the main job of Cipherlane, told as a story."""
