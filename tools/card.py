"""The picture of a lesson that is shown where its page is shared: 1200 x 630 pixels."""

from base64 import b64decode
from io import BytesIO

from PIL import Image, ImageOps

SIZE, MARGIN = (1200, 630), 40


def draw_card(png):
    """A figure, PNG in base64, in the middle of a white card. Returns the bytes of a PNG."""
    figure = Image.open(BytesIO(b64decode(png))).convert("RGB")
    inside = tuple(side - 2 * MARGIN for side in SIZE)
    card = ImageOps.pad(ImageOps.contain(figure, inside), SIZE, color="white")
    content = BytesIO()
    card.quantize(256).save(content, format="png", optimize=True)
    return content.getvalue()
