"""What displays and the report draw, computed here and drawn there."""
