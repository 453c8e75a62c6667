"""The same as the commands, in a browser: tables, runs and results on a page that only this computer can see.

``server`` starts it, ``security`` decides who may see what, ``tables`` and ``runs`` are the working folder, ``fields``
turns the declared options into fields of a page and back, ``worker`` is the process of a run. ``table_pages``,
``run_pages`` and ``comparison`` answer the browser. All work is done by ``zeronorm.workflow``.
"""
