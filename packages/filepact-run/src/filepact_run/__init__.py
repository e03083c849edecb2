"""Programs behind layers: what they change below the roots is judged, merged, recorded and undoable."""
