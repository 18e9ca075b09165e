"""A parser of pages that checks how their elements nest."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "hr", "input", "tr", "td", "th"}


class Page(HTMLParser):
    """The elements of a page; it checks that all are closed and that none has a script."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.tags = []
        self.ids = []
        self.references = []
        self.links = []
        self.words = []
        self.cells = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.cells += [""] if tag == "td" else []
        for name, value in attrs:
            assert not name.startswith("on")
            self.ids += [value] if name == "id" else []
            self.references += value.split() if name == "aria-labelledby" else []
            self.links += [value] if name in ("href", "src", "xlink:href") else []

    def handle_endtag(self, tag):
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)
