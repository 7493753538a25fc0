// An image of ink from 0 to 1, black on white, as ImageData.
export function blackOnWhite(image, width, height) {
  const pixels = new ImageData(width, height);
  image.forEach((ink, i) => {
    const shade = 255 * (1 - ink);
    pixels.data.set([shade, shade, shade, 255], 4 * i);
  });
  return pixels;
}
