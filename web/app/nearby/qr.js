// A QR code (ISO/IEC 18004) for a link: byte mode, level M, up to version 10, which holds 213 bytes. The server draws the same
// in a terminal (`Sources/Server/LocalNetwork`).

/** By version from 1: all codewords, correction codewords a block, blocks (table 9, level M). */
const versions = [
  [26, 10, 1], [44, 16, 1], [70, 26, 1], [100, 18, 2], [134, 24, 2], [172, 16, 4], [196, 18, 4], [242, 22, 4], [292, 22, 5], [346, 26, 5],
];
/** Centres of the alignment patterns (annex E). */
const alignment = [
  [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50],
];
/** @type {((row: number, column: number) => boolean)[]} which modules a mask inverts (§7.8.2) */
const masks = [
  (r, c) => (r + c) % 2 === 0, (r) => r % 2 === 0, (_, c) => c % 3 === 0, (r, c) => (r + c) % 3 === 0,
  (r, c) => ((r >> 1) + Math.floor(c / 3)) % 2 === 0, (r, c) => ((r * c) % 2) + ((r * c) % 3) === 0,
  (r, c) => (((r * c) % 2) + ((r * c) % 3)) % 2 === 0, (r, c) => (((r + c) % 2) + ((r * c) % 3)) % 2 === 0,
];

/**
 * @param {string} text
 * @returns {boolean[][] | null} rows of modules, true is dark; null when the text is too long
 */
export function qrModules(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const version = versions.findIndex(([total, correction, blocks], index) => (
    bytes.length <= Math.floor(((total - correction * blocks) * 8 - 4 - (index < 9 ? 8 : 16)) / 8))) + 1;
  if (version === 0) return null;
  const codewords = interleaved(dataCodewords(bytes, version), version);
  const tries = masks.map((_, mask) => draw(version, codewords, mask));
  return tries.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

/** @param {string} text @param {string} label @returns {SVGElement} with its quiet zone */
export function qrSvg(text, label) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const modules = qrModules(text) ?? [];
  svg.setAttribute('viewBox', `-4 -4 ${modules.length + 8} ${modules.length + 8}`);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', label);
  svg.setAttribute('shape-rendering', 'crispEdges');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('fill', '#000');
  path.setAttribute('d', modules.flatMap((line, y) => line.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join(''));
  svg.append(path);
  return svg;
}

/**
 * Mode, count, text, terminator and padding (§7.4).
 * @param {number[]} bytes @param {number} version
 */
function dataCodewords(bytes, version) {
  const [total, correction, blocks] = versions[version - 1];
  const count = total - correction * blocks;
  /** @type {number[]} */
  const bits = [];
  const append = (/** @type {number} */ value, /** @type {number} */ width) => {
    for (let shift = width - 1; shift >= 0; shift -= 1) bits.push((value >> shift) & 1);
  };
  append(0b0100, 4);
  append(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) append(byte, 8);
  append(0, Math.min(4, count * 8 - bits.length));
  append(0, (8 - (bits.length % 8)) % 8);
  const words = Array.from({ length: bits.length / 8 }, (_, at) => bits.slice(at * 8, at * 8 + 8).reduce((sum, bit) => sum * 2 + bit, 0));
  for (let padding = 0; words.length < count; padding += 1) words.push(padding % 2 ? 0x11 : 0xec);
  return words;
}

/**
 * Cut into blocks, each with its correction, and drawn in turn (§7.6).
 * @param {number[]} data @param {number} version
 */
function interleaved(data, version) {
  const [, correction, count] = versions[version - 1];
  const short = Math.floor(data.length / count);
  const shorter = count - (data.length % count);
  let from = 0;
  const blocks = Array.from({ length: count }, (_, index) => data.slice(from, from += short + (index < shorter ? 0 : 1)));
  const corrections = blocks.map((block) => reedSolomon(block, correction));
  const turns = (/** @type {number[][]} */ lists, /** @type {number} */ length) => Array.from({ length }, (_, at) => (
    lists.flatMap((list) => (at < list.length ? [list[at]] : [])))).flat();
  return [...turns(blocks, short + 1), ...turns(corrections, correction)];
}

/** @param {number[]} data @param {number} count @returns {number[]} the remainder over GF(256) */
function reedSolomon(data, count) {
  /** @type {number[]} */
  let divisor = [...Array(count - 1).fill(0), 1];
  for (let root = 1, step = 0; step < count; step += 1, root = multiply(root, 2)) {
    divisor = divisor.map((value, at) => multiply(value, root) ^ (divisor[at + 1] ?? 0));
  }
  /** @type {number[]} */
  let remainder = Array(count).fill(0);
  for (const byte of data) {
    const factor = byte ^ remainder[0];
    remainder = [...remainder.slice(1), 0].map((value, at) => value ^ multiply(divisor[at], factor));
  }
  return remainder;
}

/** @param {number} left @param {number} right */
function multiply(left, right) {
  let product = 0;
  for (let shift = 7; shift >= 0; shift -= 1) product = ((product << 1) ^ ((product >> 7) * 0x11d)) ^ (((right >> shift) & 1) * left);
  return product;
}

/** @param {number} version @param {number[]} codewords @param {number} mask */
function draw(version, codewords, mask) {
  const size = 17 + 4 * version;
  /** @type {(boolean | null)[][]} null where data goes */
  const square = Array.from({ length: size }, () => Array(size).fill(null));
  const set = (/** @type {number} */ row, /** @type {number} */ column, /** @type {boolean} */ dark) => {
    if (square[row]?.[column] !== undefined) square[row][column] = dark;
  };
  drawPatterns(set, size, version);
  drawFormat(set, size, mask);
  const bits = codewords.flatMap((byte) => [7, 6, 5, 4, 3, 2, 1, 0].map((shift) => ((byte >> shift) & 1) === 1));
  let next = 0;
  // In pairs of columns from the right, upwards and downwards in turn, past the vertical timing pattern (§7.7.3).
  for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right -= 1;
    for (let turn = 0; turn < size; turn += 1) {
      const row = up ? size - 1 - turn : turn;
      for (const column of [right, right - 1]) {
        if (square[row][column] !== null) continue;
        square[row][column] = (bits[next] ?? false) !== masks[mask](row, column);
        next += 1;
      }
    }
  }
  return /** @type {boolean[][]} */ (square);
}

/** @typedef {(row: number, column: number, dark: boolean) => void} Set */

/** @param {Set} set @param {number} size @param {number} version */
function drawPatterns(set, size, version) {
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const centres = alignment[version - 1];
  for (const row of centres) {
    for (const column of centres) {
      const inCorner = [row, column].every((at) => at === 6 || at === size - 7) && !(row === size - 7 && column === size - 7);
      if (!inCorner) drawRings(set, row, column, 2, [1]);
    }
  }
  for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]]) drawRings(set, row, column, 4, [2, 4]);
  if (version < 7) return;
  // From version 7 on, twice, with a Golay code (§7.10).
  const bits = (version << 12) | remainderOf(version << 12, 0b1111100100101, 12);
  for (let at = 0; at < 18; at += 1) {
    const dark = ((bits >> at) & 1) === 1;
    set(Math.floor(at / 3), size - 11 + (at % 3), dark);
    set(size - 11 + (at % 3), Math.floor(at / 3), dark);
  }
}

/**
 * Squares around a centre.
 * @param {Set} set @param {number} row @param {number} column @param {number} reach @param {number[]} light
 */
function drawRings(set, row, column, reach, light) {
  for (let down = -reach; down <= reach; down += 1) {
    for (let across = -reach; across <= reach; across += 1) {
      set(row + down, column + across, !light.includes(Math.max(Math.abs(down), Math.abs(across))));
    }
  }
}

/**
 * Level M and the mask, twice, with a BCH code (§7.9).
 * @param {Set} set @param {number} size @param {number} mask
 */
function drawFormat(set, size, mask) {
  const bits = ((mask << 10) | remainderOf(mask << 10, 0b10100110111, 10)) ^ 0b101010000010010;
  for (let at = 0; at < 15; at += 1) {
    const dark = ((bits >> at) & 1) === 1;
    if (at < 6) set(at, 8, dark);
    else if (at < 8) set(at + 1, 8, dark);
    else if (at === 8) set(8, 7, dark);
    else set(8, 14 - at, dark);
    if (at < 8) set(8, size - 1 - at, dark);
    else set(size - 15 + at, 8, dark);
  }
  set(size - 8, 8, true);
}

/**
 * Of two polynomials over GF(2).
 * @param {number} value @param {number} divisor @param {number} degree
 */
function remainderOf(value, divisor, degree) {
  let rest = value;
  for (let shift = 7; shift >= 0; shift -= 1) if ((rest >> (shift + degree)) & 1) rest ^= divisor << shift;
  return rest;
}

/**
 * How hard it is to read: runs, blocks and what looks like a corner (§7.8.3).
 * @param {boolean[][]} square
 */
function penalty(square) {
  const lines = [...square, ...square.map((_, column) => square.map((row) => row[column]))];
  let result = 0;
  for (const line of lines) {
    const text = line.map((dark) => (dark ? '1' : '0')).join('');
    for (const { length } of text.match(/0{5,}|1{5,}/g) ?? []) result += length - 2;
    for (const corner of ['10111010000', '00001011101']) {
      for (let at = text.indexOf(corner); at >= 0; at = text.indexOf(corner, at + 1)) result += 40;
    }
  }
  for (let row = 1; row < square.length; row += 1) {
    for (let column = 1; column < square.length; column += 1) {
      const dark = square[row][column];
      if (dark === square[row - 1][column] && dark === square[row][column - 1] && dark === square[row - 1][column - 1]) result += 3;
    }
  }
  const share = (square.flat().filter(Boolean).length * 100) / square.length ** 2;
  return result + Math.floor(Math.abs(share - 50) / 5) * 10;
}
