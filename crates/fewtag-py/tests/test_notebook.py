"""What a real notebook shows: an IPython kernel runs the cells."""

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CELLS = [
    'import fewtag\nmusic = fewtag.adapt(["play [nina simone](artist)", "put on some [jazz](genre)"])',
    'found = music("could you play billie holiday")\nfound',
    "found.explain()",
    'n = len(list(music.tag(["play sade"] * 1000)))',
    'n = len(list(music.tag(["play sade"] * 20)))',
]


@pytest.fixture(scope="module")
def shown():
    """What each cell shows, as HTML."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [[output.data["text/html"] for output in cell.outputs if "data" in output] for cell in notebook.cells]


def test_an_answer_shows_itself_in_colours_with_probabilities(shown):
    (html,) = shown[1]
    assert "could you play <mark" in html and "billie holiday <small" in html and "artist 0." in html


def test_an_explanation_is_a_heat_map(shown):
    (html,) = shown[2]
    assert "billie holiday = artist" in html and "background:rgba(" in html and ">nina</span>" in html


def test_a_long_run_is_a_progress_bar_and_a_short_one_is_not(shown):
    assert shown[3] == ['<progress value="1000" max="1000"></progress> 1,000 of 1,000 texts']
    assert shown[4] == []
