"""Charts as inline SVG: they print, need no library, and follow the colours of the page."""
