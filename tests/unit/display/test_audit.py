"""The picture of an audit."""


def test_segments_have_their_simultaneous_intervals(displays, ax):
    display = displays["audit"].plot(ax)
    drawn = {tuple(line.get_xdata()) for line in display.ax_.lines}
    for segment in display.audit.segments:
        assert {(segment.low, segment.high), (segment.difference,)} <= drawn
    assert [label.get_text().split(" (")[0] for label in display.ax_.get_yticklabels()] == [
        segment.name for segment in display.audit.segments
    ]


def test_most_segments_and_the_method_of_the_result(displays, ax):
    audit = displays["audit"].audit
    assert len(audit.plot(ax, most=2).ax_.get_yticklabels()) == 2
