"""Each step on the page: a table, its columns, what will happen, a run, its result."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest

from app.conftest import OURS, QUICK, client_of, table_text
from datasets.workbooks import workbook
from zeronorm.app import _fields as fields
from zeronorm.app import _runs as runs
from zeronorm.app._context import Context
from zeronorm.app._runs import WatchedRun
from zeronorm.app._security import Access
from zeronorm.datasets.readers import known_formats
from zeronorm.result._folder import PROGRESS, RUNNING, _host
from zeronorm.selection._progress_file import ProgressFile
from zeronorm.workflow._result import Result


def asked(table, kind="select", **options):
    return {"kind": kind, "table": table, "options": {**QUICK, **options}}


# -- Tables --


def test_a_file_becomes_a_table_and_a_second_one_of_its_name_another(client):
    for name in ("patients.csv", "patients-2.csv"):
        answer = client.put("/tables?name=patients.csv", content=table_text().encode(), headers=OURS)
        assert (answer.status_code, answer.json()) == (201, {"table": name})
    assert "patients-2.csv" in client.get("/").text
    assert client.put("/tables?name=empty.csv", content=b"", headers=OURS).status_code == 400


def test_a_table_shows_types_suspicious_cells_and_first_rows(client, table):
    text = client.get(f"/tables/{table}").text
    assert "36 rows, 7 columns" in text
    assert "names of samples" in text
    assert "1 suspicious cell" in text
    assert "k.A." in text
    assert 'value="state"' in text  # suggested as an outcome


def test_columns_are_found_by_name(client, table):
    found = client.get(f"/tables/{table}/columns?q=SCRIPT").text
    assert found.count('class="role"') == 1
    assert "No column has such a name" in client.get(f"/tables/{table}/columns?q=nothing").text
    for page in ("0", "-1", "x", "9" * 30):
        assert client.get(f"/tables/{table}/columns?page={page}").status_code == 200


def test_a_table_that_is_read_wrong_is_read_again(client, context):
    context.tables.folder.mkdir(parents=True)
    (context.tables.folder / "comma.csv").write_text(
        "title\n\na;b;y\n" + "1,5;2,5;x\n3,5;4,5;z\n" * 6, encoding="utf-8"
    )
    text = client.get("/tables/comma.csv?header_row=3&decimal_comma=true").text
    assert "12 rows, 3 columns" in text
    assert "<bdi>1.5</bdi>" in text or "<bdi>1,5</bdi>" in text
    wrong = client.get("/tables/comma.csv?header_row=99")
    assert wrong.status_code == 200
    assert 'role="alert"' in wrong.text
    assert "Read it again" in wrong.text


def test_sheets_are_listed(client, context):
    values = [["a", "b", "y"], *([i, i * i % 7, "xz"[i % 2]] for i in range(12))]
    book = workbook({"about": [["only a text"]], "values": values})
    assert client.put("/tables?name=book.xlsx", content=book, headers=OURS).status_code == 201
    text = client.get("/tables/book.xlsx").text
    assert '<option value="values"' in text
    wrong = client.get("/tables/book.xlsx?sheet=about").text
    assert 'role="alert"' in wrong
    assert '<option value="values"' in wrong


def test_a_bundled_data_set_needs_no_file(client):
    text = client.get("/tables/known:iris").text
    assert "150 rows, 5 columns" in text
    assert 'name="target" value="species"' in text
    found = client.post("/plan", json=asked("known:iris", target="species"), headers=OURS).json()
    assert found["command"].startswith("zeronorm select iris --target species")


def test_every_format_that_is_read_is_accepted_under_its_name(client):
    for ending in known_formats():
        answer = client.put(f"/tables?name=x{ending}", content=b"not a table", headers=OURS)
        assert answer.json()["table"].endswith(ending)
        assert client.get(f"/tables/{answer.json()['table']}").status_code == 200


# -- What will happen --


def test_the_plan_states_data_folds_time_and_the_command(client, table):
    found = client.post("/plan", json=asked(table), headers=OURS).json()
    assert "36 samples with 5 features are used to predict state" in found["steps"][0]
    assert "fisher" in found["steps"][1]
    assert "3 folds" in found["steps"][2]
    assert found["time"] == "less than half a minute"
    assert f"{table} --target state --method fisher" in found["command"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nothing"}, "The field “Outcome” names 'nothing'"),
        ({"cv": "30"}, "Set “Folds” = "),
        ({"control": "fdr"}, "“Method”"),
        ({"features": "99"}, "“Number of features”"),
    ],
)
def test_what_is_wrong_is_said_before_the_run_in_the_names_of_the_page(client, table, options, message):
    answer = client.post("/plan", json=asked(table, **options), headers=OURS)
    assert answer.status_code == 400
    assert message in answer.json()["error"]


# -- Runs --


def test_a_run_is_what_select_returns(client, context, table, in_this_process):
    name = client.post("/runs", json=asked(table, ignore="d"), headers=OURS).json()["run"]
    run = context.runs.get(name)
    assert run.state == "finished", run.outcome
    result = Result.load(run.folder)
    assert set(result.features) == {"a", "b"}
    assert result.provenance["command"].startswith("zeronorm select ")
    text = client.get(f"/runs/{name}").text
    assert result.headline in text
    assert "model.json" in text
    assert "--save-model" in text
    assert f"/runs/{name}/report" in text


def test_a_comparison_runs_too(client, context, table, in_this_process):
    given = {
        "kind": "compare",
        "table": table,
        "options": {"target": "state", "methods": "fisher,golub", "features": "2", "cv": "3"},
    }
    run = context.runs.get(client.post("/runs", json=given, headers=OURS).json()["run"])
    assert run.state == "finished", run.outcome
    assert Result.load(run.folder).kind == "comparison"


@pytest.mark.skipif("test_panel" not in fields.KINDS, reason="lists cannot be tested yet")
def test_a_list_is_tested(client, context, table, in_this_process):
    options = {
        "target": "state",
        "panel": "a\nb\n",
        "method": "fisher",
        "features": "2",
        "cv": "3",
        "random_lists": "9",
    }
    given = {"kind": "test_panel", "table": table, "options": options}
    found = client.post("/plan", json=given, headers=OURS).json()
    assert "The list of 2 features is measured, beside 9 random lists" in found["steps"][1]
    assert found["command"].startswith("printf '%s\\n' a b > list.txt\nzeronorm test-panel list.txt ")
    run = context.runs.get(client.post("/runs", json=given, headers=OURS).json()["run"])
    assert run.state == "finished", run.outcome
    assert client.get(f"/runs/{run.name}").status_code == 200
    empty = {**given, "options": {**options, "panel": " \n"}}
    for address in ("/plan", "/runs"):
        answer = client.post(address, json=empty, headers=OURS)
        assert (answer.status_code, "“The list” is empty" in answer.json()["error"]) == (400, True)


def test_a_run_that_fails_says_why_and_can_be_tried_again(
    client, context, table, in_this_process, monkeypatch
):
    from zeronorm.app import _worker

    with monkeypatch.context() as patch:
        patch.setattr(_worker, "run_job", lambda *_: (_ for _ in ()).throw(ValueError("the sky fell")))
        run = context.runs.get(client.post("/runs", json=asked(table), headers=OURS).json()["run"])
    assert run.state == "failed"
    assert "the sky fell" in client.get(f"/runs/{run.name}").text
    assert client.post(f"/runs/{run.name}/continue", json={}, headers=OURS).status_code == 200
    assert run.state == "finished"
    assert client.post(f"/runs/{run.name}/continue", json={}, headers=OURS).status_code == 400
    assert client.post(f"/runs/{run.name}/stop", json={}, headers=OURS).status_code == 400


def test_new_samples_are_predicted_and_scored(finished):
    context, run = finished
    client = client_of(context)
    given = {"table": "patients.csv", "options": {"target": "state"}}
    answer = client.post(f"/runs/{run.name}/apply", json=given, headers=OURS)
    assert answer.status_code == 201, answer.text
    name = answer.json()["run"]
    text = client.get(f"/runs/{name}").text
    assert "not new samples" in text  # they are those of the run
    assert "zeronorm apply" in text
    assert (
        client.get(f"/runs/{name}/files/predictions.csv")
        .text.splitlines()[0]
        .startswith("sample,truth,prediction")
    )
    assert client.get(f"/runs/{name}/report").status_code == 200


def test_new_samples_without_an_outcome_are_predicted(finished):
    context, run = finished
    (context.tables.folder / "new.csv").write_text(table_text().replace(",state", ",other", 1))
    given = {"table": "new.csv", "options": {}}
    answer = client_of(context).post(f"/runs/{run.name}/apply", json=given, headers=OURS)
    assert "36 predictions of state" in client_of(context).get(f"/runs/{answer.json()['run']}").text


def test_new_samples_that_lack_features_are_refused_and_leave_no_run(finished):
    context, run = finished
    (context.tables.folder / "other.csv").write_text("x,y\n1,2\n3,4\n")
    before = [each.name for each in context.runs.all()]
    for options in ({}, {"out": "x"}, {"target": "nothing"}):
        given = {"table": "other.csv", "options": options}
        answer = client_of(context).post(f"/runs/{run.name}/apply", json=given, headers=OURS)
        assert answer.status_code == 400
        assert answer.json()["error"]
    assert [each.name for each in context.runs.all()] == before


def test_everything_can_be_downloaded(finished):
    context, run = finished
    client = client_of(context)
    with zipfile.ZipFile(io.BytesIO(client.get(f"/runs/{run.name}/all.zip").content)) as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert {"result.json", "records.parquet", "report.html", "selected.csv", "model.json"} <= names
    answer = client.get(f"/runs/{run.name}/files/result.json")
    assert "attachment" in answer.headers["content-disposition"]
    assert json.loads(answer.text)["kind"] == "selection"
    assert client.get(f"/runs/{run.name}/files/run.json").status_code == 404


def test_two_results_stand_side_by_side(finished):
    context, run = finished
    text = client_of(context).get(f"/compare?first={run.name}&second={run.name}").text
    assert "In both" in text
    assert "(2)" in text
    assert client_of(context).get(f"/compare?first={run.name}&second=none").status_code == 404


def test_a_result_folder_elsewhere_is_shown(finished, tmp_path):
    _, run = finished
    context = Context(tmp_path, Access("127.0.0.1", 8765), most_bytes=1, opened=run.folder)
    client = client_of(context)
    assert run.name in client.get("/").text
    assert client.get(f"/runs/{run.name}/report").status_code == 200


def test_a_damaged_result_is_named(finished, tmp_path):
    (tmp_path / "runs" / "broken").mkdir(parents=True)
    (tmp_path / "runs" / "broken" / "result.json").write_text("{}")
    client = client_of(Context(tmp_path, Access("127.0.0.1", 8765), most_bytes=1))
    text = client.get("/runs/broken").text
    assert "cannot be read" in text
    assert client.get("/compare?first=broken&second=broken").status_code == 400


# -- Progress --


def test_a_run_of_another_process_is_watched(client, context):
    """By the files that every run writes to its folder."""
    folder = context.runs.folder / "elsewhere"
    (folder / "journal").mkdir(parents=True)
    (folder / RUNNING).write_text(f"{_host()} 1")  # the first process of a computer always runs
    bar = ProgressFile(folder / PROGRESS)
    bar.update(total=6, advance=2, description="fisher, fold 3 of 5")
    run = context.runs.get("elsewhere")
    assert run.state == "running"
    assert run.progress()["text"] == "fisher, fold 3 of 5"
    page = client.get("/runs/elsewhere").text
    assert "started elsewhere" in page
    assert 'id="stop"' not in page
    assert client.post("/runs/elsewhere/stop", json={}, headers=OURS).status_code == 400
    assert client.post("/runs/elsewhere/continue", json={}, headers=OURS).status_code == 400


def test_events_tell_the_end(finished):
    context, run = finished
    lines = client_of(context).get(f"/runs/{run.name}/events").text.splitlines()
    assert lines[0] == "event: progress"
    assert "event: end" in lines
    assert json.loads(lines[-2 if not lines[-1] else -1].removeprefix("data: ")) == {"state": "finished"}


def test_a_process_that_died_leaves_a_run_that_can_go_on(context):
    folder = context.runs.folder / "dead"
    (folder / "journal").mkdir(parents=True)
    (folder / "journal" / "x.json").write_text("{}")
    (folder / RUNNING).write_text(f"{_host()} 999999999")
    settings = {"kind": "select", "table": "t", "arguments": {"data": "t"}, "started": time.time() - 3600}
    (folder / runs.SETTINGS).write_text(json.dumps(settings))
    run = WatchedRun("dead", folder)
    assert (run.state, run.can_continue, run.n_finished) == ("stopped", True, 1)
    (folder / runs.HEARTBEAT).touch()
    assert run.state == "starting"
