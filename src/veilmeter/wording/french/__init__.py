"""The French texts of the annex; sentences of findings are English."""
