// What a pen has drawn, as pixels. A stroke is a list of points [x, y] in hundredths of the height
// of the pad.

const HIGH = 28; // pixels, of an image
const INK = 20; // pixels that MNIST's digits are high or wide at most
const PEN = 2.4; // pixels, about the width of their lines
const SLACK = 5; // hundredths that may part two strokes of one digit
const DOT = 15; // hundredths: smaller drawings are not made larger than this would be

const spanOf = (strokes, axis) => {
  const values = strokes.flat().map((point) => point[axis]);
  return [Math.min(...values), Math.max(...values)];
};

// Strokes over or under one another are one digit -> lists of strokes, from left to right.
export function digitsOf(strokes) {
  const digits = [];
  const fromLeft = [...strokes].sort((a, b) => spanOf([a], 0)[0] - spanOf([b], 0)[0]);
  for (const stroke of fromLeft) {
    const last = digits.at(-1);
    if (last && spanOf([stroke], 0)[0] - spanOf(last, 0)[1] < SLACK) last.push(stroke);
    else digits.push([stroke]);
  }
  return digits;
}

// One digit on a square of 28 pixels as MNIST's were made: its ink scaled to 20 pixels in its
// longer direction, shape kept, and its centre of mass brought to the middle, here of the height.
// Returns {ink: 28 x 28 values from 0 to 1, left, right: its first column, the one after its last}.
function pixelsOf(strokes) {
  const [left, right] = spanOf(strokes, 0);
  const [top, bottom] = spanOf(strokes, 1);
  const scale = (INK - PEN) / Math.max(right - left, bottom - top, DOT);
  const context = new OffscreenCanvas(HIGH, HIGH).getContext("2d", { willReadFrequently: true });
  context.lineWidth = PEN;
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    for (const [x, y] of [...stroke, stroke.at(-1)]) {
      context.lineTo(
        HIGH / 2 + (x - (left + right) / 2) * scale,
        HIGH / 2 + (y - (top + bottom) / 2) * scale,
      );
    }
    context.stroke();
  }
  const { data } = context.getImageData(0, 0, HIGH, HIGH);
  const drawn = Float32Array.from({ length: HIGH * HIGH }, (_, i) => data[4 * i + 3] / 255);
  return centred(drawn);
}

function centred(drawn) {
  let mass = 0;
  let moment = 0;
  const columns = [];
  drawn.forEach((value, i) => {
    mass += value;
    moment += value * Math.floor(i / HIGH);
    if (value) columns.push(i % HIGH);
  });
  const down = Math.round((HIGH - 1) / 2 - moment / mass);
  const ink = new Float32Array(HIGH * HIGH);
  drawn.forEach((value, i) => {
    const moved = i + down * HIGH;
    if (value && moved >= 0 && moved < ink.length) ink[moved] = value;
  });
  return { ink, left: Math.min(...columns), right: Math.max(...columns) + 1 };
}

// The gaps between digits in pixels: as drawn, but at least 2 pixels, and never more than fit.
function gapsBetween(digits, room) {
  const drawn = digits.slice(1).map((digit, i) => {
    const [[, end], [start]] = [spanOf(digits[i], 0), spanOf(digit, 0)];
    return Math.max(2, Math.round(((start - end) * INK) / 100));
  });
  const wanted = drawn.reduce((sum, gap) => sum + gap, 0);
  return wanted <= room ? drawn : drawn.map(() => Math.floor(room / drawn.length));
}

// Strokes as an image of 28 rows and `width` columns, Float32Array of values from 0 to 1.
export function imageOf(strokes, width) {
  if (!strokes.length) throw new Error("There is nothing to read yet: draw a number.");
  const digits = digitsOf(strokes);
  const cells = digits.map(pixelsOf);
  const wide = cells.reduce((sum, { left, right }) => sum + right - left, 0);
  const room = width - wide;
  if (room < 2 * (digits.length - 1))
    throw new Error(`These are ${digits.length} digits: more than fit side by side. Draw fewer.`);
  const gaps = gapsBetween(digits, room);
  const image = new Float32Array(HIGH * width);
  let x = Math.floor((room - gaps.reduce((sum, gap) => sum + gap, 0)) / 2);
  cells.forEach(({ ink, left, right }, i) => {
    for (let row = 0; row < HIGH; row++)
      image.set(ink.subarray(row * HIGH + left, row * HIGH + right), row * width + x);
    x += right - left + (gaps[i] ?? 0);
  });
  return image;
}
