// Trained weights: from the text in a page to named tensors.
// The format: https://huggingface.co/docs/safetensors

const HEADER_START = 8; // the bytes before hold the length of the header

function damaged(what) {
  return new Error(`The weights are damaged: ${what}.`);
}

/* Base64 -> Uint8Array. */
export function fromBase64(text) {
  let characters;
  try {
    characters = atob(text);
  } catch {
    throw damaged("their text is no base64");
  }
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/* The 16 bits of a half-precision number -> the number. */
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

const HALVES = new Float32Array(2 ** 16); // all of them, by their bits
for (let bits = 0; bits < HALVES.length; bits++) HALVES[bits] = fromHalf(bits);

function fromHalves(buffer) {
  const halves = new Uint16Array(buffer);
  const numbers = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) numbers[i] = HALVES[halves[i]];
  return numbers;
}

// dtype -> its bytes a number, and what makes an array of a buffer
const DTYPES = new Map([
  ["F32", { size: 4, read: (buffer) => new Float32Array(buffer) }],
  ["F16", { size: 2, read: fromHalves }],
  ["U8", { size: 1, read: (buffer) => new Uint8Array(buffer) }],
]);

function areCounts(values) {
  return Array.isArray(values) && values.every((n) => Number.isSafeInteger(n) && n >= 0);
}

function readHeader(bytes) {
  if (bytes.length < HEADER_START) {
    throw damaged(`${bytes.length} bytes are too short for a file`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const end = HEADER_START + length;
  if (end > bytes.length) {
    throw damaged(`a header of ${length} bytes is longer than the file of ${bytes.length}`);
  }
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_START, end)));
  } catch {
    throw damaged("their header is no JSON");
  }
  if (header?.constructor !== Object) throw damaged("their header names no tensors");
  delete header.__metadata__;
  return { header, content: bytes.subarray(end) };
}

function readTensor(name, entry, content) {
  const { dtype, shape, data_offsets: offsets } = entry ?? {};
  const type = DTYPES.get(dtype);
  if (!type) throw damaged(`${name} has the dtype ${dtype}, which cannot be read`);
  if (!areCounts(shape)) throw damaged(`${name} has no shape`);
  if (!areCounts(offsets) || offsets.length !== 2) throw damaged(`${name} has no two offsets`);
  const [start, end] = offsets;
  if (start > end || end > content.length) {
    throw damaged(`${name} lies at ${start} to ${end}, outside the ${content.length} bytes`);
  }
  const needed = shape.reduce((product, n) => product * n, type.size);
  if (end - start !== needed) {
    throw damaged(`${name} has ${end - start} bytes, its shape and dtype need ${needed}`);
  }
  const copy = new Uint8Array(content.subarray(start, end)); // begins where any dtype may begin
  return { shape, data: type.read(copy.buffer) };
}

/* Uint8Array of a safetensors file -> {name: {shape, data}}; halves become Float32Array. */
export function readSafetensors(bytes) {
  const { header, content } = readHeader(bytes);
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    tensors[name] = readTensor(name, entry, content);
  }
  return tensors;
}
