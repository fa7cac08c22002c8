"""The tables of a report; `analysis/report.py` lists them in order."""
