"""Between any editor and any agent: what touches files is guarded, everything else passes."""
