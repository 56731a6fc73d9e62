import json

from support.command_line import refuse, run


def test_plan_both_ways():
    content = json.loads(run("plan", "--error", "0.1", "--repeats", "100", "--format", "json").stdout)
    assert 200 < content["results"][0]["n"] < 700
    content = json.loads(run("plan", "--rows", "350", "--repeats", "100", "--format", "json").stdout)
    assert 0.07 < content["results"][0]["true_error"] < 0.14
    assert "0.1000" in run("plan", "--error", "10%", "--repeats", "50").stdout


def test_plan_draws(tmp_path, monkeypatch):
    from truecal.cli import plan

    monkeypatch.setattr(plan, "_PLOTTED_SIZES", (100, 400))
    run("plan", "--error", "0.2", "--repeats", "50", "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "choose a name that ends in" in refuse("plan", "--error", "0.2", "--plot", tmp_path / "a.bmp")


def test_plan_refuses_what_cannot_be():
    assert "Give --error" in refuse("plan")
    said = refuse("plan", "--error", "10")
    assert "--error must lie between" in said
    assert "For 10% write 0.1." in said
    assert "alternative" not in said


def test_the_heading_says_what_was_asked():
    both = run("plan", "--error", "0.2", "--rows", "100", "--repeats", "20").stdout
    assert both.startswith("Rows needed to detect an error, and smallest error that the rows detect with")
    assert run("plan", "--rows", "100", "--repeats", "20").stdout.startswith(
        "Smallest error that the rows detect"
    )


def test_plan_for_clusters():
    clusters = ("--cluster-size", "5", "--icc", "0.3")
    content = json.loads(
        run("plan", "--error", "0.1", "--repeats", "100", *clusters, "--format", "json").stdout
    )
    assert abs(content["design_effect"] - 2.2) < 1e-12
    assert content["results"][0]["n"] % 5 == 0
    text = run("plan", "--error", "0.2", "--repeats", "50", *clusters).stdout
    assert "a design effect of 2.2" in " ".join(text.split())


def test_gold_labels_beside_a_judge():
    judge = ("--sensitivity", "0.95", "--specificity", "0.9")
    text = run("plan", "--length", "0.1", "--rows", "3000", *judge).stdout
    assert "gold labels in 3,000 judged rows are worth" in text
    assert "needs --rows" in refuse("plan", "--length", "0.1", *judge)
    assert "--length needs --specificity" in refuse(
        "plan", "--length", "0.1", "--rows", "3000", "--sensitivity", "0.9"
    )
    assert "cannot be combined" in refuse(
        "plan", "--length", "0.1", "--rows", "3000", *judge, "--error", "0.1"
    )
    assert "--length is too short for 200 rows" in refuse("plan", "--length", "0.05", "--rows", "200", *judge)
