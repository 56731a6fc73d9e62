"""What is in a figure."""


def labelled(ax, start):
    """The line whose label begins like this."""
    (found,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return found


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
