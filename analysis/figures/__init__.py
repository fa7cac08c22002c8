"""The figures of a report, each a small typed record that draws itself; `analysis/report.py` lists them in order."""
