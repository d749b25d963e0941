"""What the folder ``deploy`` is made of: the Helm chart and the kustomize base, both of what ``tenure install`` prints.

    python -m tools.deploy            # writes them anew

Nothing in them is written by hand. `tools.deploy.choices` lists the choices that the chart leaves open. The manifests
of every combination of them are merged into templates whose conditions say what depends on which choice.
"""
