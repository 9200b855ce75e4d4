// Draws a person in front of a camera, in a room. Runs inside pages, so `drawing` must not use anything that is defined outside it.

/**
 * @typedef {object} Person
 * @property {string} skin @property {string} hair colors
 * @property {'short' | 'quiff' | 'bob' | 'long' | 'waves' | 'bun' | 'curly' | 'cropped' | 'scarf'} style of the hair
 * @property {string} top the color of the clothes @property {'tee' | 'shirt' | 'sweater' | 'hoodie' | 'blazer'} clothes
 * @property {'window' | 'books' | 'kitchen' | 'sofa' | 'brick' | 'garden'} place
 * @property {string} wall a color
 * @property {'smile' | 'laugh' | 'talk'} mouth
 * @property {string} [lips] @property {string} [iris] colors
 * @property {boolean} [glasses] @property {'full' | 'stubble'} [beard] @property {string} [headphones] a color
 * @property {boolean} [lashes] @property {string} [earrings] @property {boolean} [old]
 * @property {number} [jaw] from 0, narrow, to 1, wide
 * @property {number} [scale] of the person in the image @property {number} [tilt] of the head, in radians
 */

/**
 * Returns a function that draws the person at a time in seconds. Everything is drawn on 1280 × 720, of which an image of another
 * shape shows the middle.
 *
 * @param {Person} person @param {number} shownWidth @param {number} shownHeight
 * @returns {(context: CanvasRenderingContext2D, seconds: number, isBlinking?: boolean) => void}
 */
export function drawing(person, shownWidth, shownHeight) {
  const [width, height] = [1280, 720];
  const zoom = Math.max(shownWidth / width, shownHeight / height);
  // Colors

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const rgb = (channels, alpha = 1) => `rgb(${channels.map(Math.round).join(' ')} / ${alpha})`;
  const mix = (one, other, share, alpha = 1) => {
    const [from, to] = [parts(one), parts(other)];
    return rgb(from.map((value, index) => value + (to[index] - value) * share), alpha);
  };
  const dark = (color, share, alpha) => mix(color, '#1a0d12', share, alpha);
  const light = (color, share, alpha) => mix(color, '#fff4e4', share, alpha);
  const see = (color, alpha) => mix(color, color, 0, alpha);

  // Shapes

  let c = /** @type {CanvasRenderingContext2D} */ (/** @type {unknown} */ (null));
  const canvas = () => Object.assign(document.createElement('canvas'), { width: shownWidth, height: shownHeight });
  const fill = (style, shape) => {
    c.fillStyle = style;
    if (shape instanceof Path2D) return c.fill(shape);
    c.beginPath();
    shape();
    c.fill();
  };
  const line = (style, thick, shape) => {
    Object.assign(c, { strokeStyle: style, lineWidth: thick, lineCap: 'round', lineJoin: 'round' });
    if (shape instanceof Path2D) return c.stroke(shape);
    c.beginPath();
    shape();
    c.stroke();
  };
  const inside = (shape, task) => {
    c.save();
    c.clip(shape);
    task();
    c.restore();
  };
  const oval = (x, y, wide, high = wide, turned = 0) => c.ellipse(x, y, wide, high, turned, 0, 2 * Math.PI);
  const box = (color, x, y, wide, high, round = 0) => fill(color, () => c.roundRect(x, y, wide, high, round));
  const across = (x, y, toX, toY, ...stops) => {
    const gradient = c.createLinearGradient(x, y, toX, toY);
    stops.forEach((color, index) => gradient.addColorStop(index / (stops.length - 1), color));
    return gradient;
  };
  const glow = (x, y, radius, ...stops) => {
    const gradient = c.createRadialGradient(x, y, 0, x, y, radius);
    stops.forEach((color, index) => gradient.addColorStop(index / (stops.length - 1), color));
    return gradient;
  };
  /** A soft round spot. */
  const spot = (color, alpha, x, y, wide, high = wide) => {
    c.save();
    c.translate(x, y);
    c.scale(1, high / wide);
    fill(glow(0, 0, wide, see(color, alpha), see(color, alpha * 0.6), see(color, 0)), () => oval(0, 0, wide));
    c.restore();
  };
  /** A path, given for the right half, and its mirror image. */
  const both = (half) => {
    const path = new Path2D(half);
    path.addPath(new Path2D(half), new DOMMatrix([-1, 0, 0, 1, 0, 0]));
    return path;
  };
  const mirrored = (task) => {
    for (const side of [-1, 1]) {
      c.save();
      c.scale(side, 1);
      task(side);
      c.restore();
    }
  };
  // The same sequence for each person in every run.
  let seed = [...person.place + person.style + person.top].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7);
  const random = (from = 0, to = 1) => {
    seed = (seed * 16_807 + 11) % 2_147_483_647;
    return from + (to - from) * (seed / 2_147_483_647);
  };

  // Rooms

  const leaves = (x, y, size, color, count = 13) => {
    for (let index = 0; index < count; index += 1) {
      c.save();
      c.translate(x, y);
      c.rotate(-1.25 + (2.5 * index) / (count - 1) + random(-0.1, 0.1));
      const long = size * random(0.7, 1.1);
      const path = new Path2D(`M0 0 C${long * 0.3} ${-long * 0.35} ${long * 0.2} ${-long * 0.8} 0 ${-long} C${-long * 0.2} ${-long * 0.8} ${-long * 0.3} ${-long * 0.35} 0 0`);
      fill(across(0, 0, 0, -long, dark(color, 0.35), light(color, random(0, 0.25))), path);
      c.restore();
    }
  };
  const plant = (x, y, size, pot = '#c9805a', color = '#4f8a58') => {
    leaves(x, y - size * 0.1, size, color);
    fill(across(x - size * 0.3, 0, x + size * 0.3, 0, light(pot, 0.15), dark(pot, 0.3)),
      new Path2D(`M${x - size * 0.3} ${y - size * 0.12} h${size * 0.6} l${-size * 0.08} ${size * 0.5} h${-size * 0.44} Z`));
  };
  const windowPane = (x, y, wide, high, frame = '#f4efe6') => {
    box(frame, x - 14, y - 14, wide + 28, high + 28, 4);
    fill(across(0, y, 0, y + high, '#cfe6f5', '#f6f4e6'), () => c.rect(x, y, wide, high));
    c.save();
    c.beginPath();
    c.rect(x, y, wide, high);
    c.clip();
    for (let index = 0; index < 9; index += 1) {
      spot(['#8fb78a', '#a8c796', '#73a07a'][index % 3], 0.9, x + random(0, wide), y + high + random(-70, 30), random(60, 130));
    }
    spot('#fffbe8', 0.6, x + wide * 0.6, y + high * 0.25, wide * 0.6);
    c.restore();
    box(frame, x + wide / 2 - 6, y, 12, high);
    box(frame, x, y + high * 0.42, wide, 10);
    box(light(frame, 0.3), x - 30, y + high + 14, wide + 60, 20, 3);
  };
  const shelf = (x, y, wide, color, { rows = 3, step = 150 } = {}) => {
    for (let row = 0; row < rows; row += 1) {
      const ground = y + row * step;
      let at = x + random(8, 30);
      while (at < x + wide - 40) {
        const choice = random();
        if (choice < 0.1) {
          plant(at + 34, ground - 34, 62, '#e2d6c2');
          at += 84;
        } else if (choice < 0.18) {
          fill(light('#d9a441', 0.4), () => oval(at + 26, ground - 30, 24, 30));
          at += 70;
        } else {
          const [thick, high] = [random(14, 30), random(78, 118)];
          box(['#b4553f', '#2f6f73', '#d8a24a', '#e9dcc3', '#42526e', '#7d8f69', '#c98b70', '#f0e7d8'][Math.floor(random(0, 8))], at, ground - high, thick, high, 2);
          box('#ffffff40', at + 3, ground - high + 14, thick - 6, 6);
          at += thick + 2;
        }
      }
      box(dark(color, 0.25), x, ground + 12, wide, 10);
      box(color, x, ground, wide, 14, 2);
    }
  };
  const pictureFrame = (x, y, wide, high, color) => {
    box('#00000022', x + 6, y + 9, wide, high, 3);
    box('#fbf7ef', x, y, wide, high, 3);
    c.save();
    c.beginPath();
    c.rect(x + 16, y + 16, wide - 32, high - 32);
    c.clip();
    box(light(color, 0.55), x, y, wide, high);
    fill(color, () => oval(x + wide * 0.38, y + high * 0.75, wide * 0.36));
    fill(dark(color, 0.25), () => oval(x + wide * 0.8, y + high * 0.9, wide * 0.34));
    fill('#e9a15f', () => oval(x + wide * 0.66, y + high * 0.34, wide * 0.1));
    c.restore();
  };
  const lamp = (x, y, shade = '#fbe6bd') => {
    spot('#ffe2a6', 0.75, x, y + 20, 260);
    box('#5a4a3f', x - 4, y + 40, 8, height);
    fill(across(x, y - 50, x, y + 60, shade, '#fff6df'), new Path2D(`M${x - 44} ${y - 60} h88 l34 116 h-156 Z`));
  };
  const wall = () => {
    fill(across(0, 0, width, height, light(person.wall, 0.3), person.wall, dark(person.wall, 0.18)), () => c.rect(0, 0, width, height));
  };
  const places = {
    window() {
      wall();
      windowPane(80, 40, 330, 400);
      for (const x of [-30, 400]) fill(across(x, 0, x + 110, 0, '#fbf6ec', '#e5dac8', '#fbf6ec', '#dccfba'), () => c.rect(x, -10, 110, 600));
      pictureFrame(930, 90, 190, 240, '#6f9a8d');
      box('#b88a5e', 860, 560, 420, 200, 6);
      plant(1110, 510, 190);
    },
    books() {
      wall();
      box(dark('#a9764a', 0.1), 690, 0, 590, height);
      shelf(700, 170, 570, '#b98455', { rows: 4, step: 165 });
      windowPane(40, 80, 210, 330);
      lamp(380, 210);
      plant(90, 610, 220, '#8fa3a0', '#5d8f5a');
    },
    kitchen() {
      wall();
      for (let row = 0; row < 5; row += 1) {
        for (let column = 0; column < 14; column += 1) box(light(person.wall, random(0.35, 0.6)), column * 96 + (row % 2 ? -48 : 0), 330 + row * 46, 92, 42, 3);
      }
      box('#c49a6c', -10, 560, width + 20, 26);
      box('#f1ece2', -10, 586, width + 20, 200);
      shelf(40, 250, 380, '#c49a6c', { rows: 1 });
      windowPane(880, 40, 300, 250);
      for (const x of [470, 800]) {
        box('#4b4b4b', x - 2, -10, 4, 110);
        spot('#ffe7b8', 0.7, x, 150, 150);
        fill('#2f5f5a', new Path2D(`M${x - 60} 160 q10 -70 60 -72 q50 2 60 72 Z`));
      }
      plant(120, 520, 120, '#e9e2d4', '#6b9c56');
      fill('#d7745a', () => oval(1120, 520, 54, 44));
    },
    sofa() {
      wall();
      pictureFrame(130, 70, 170, 210, '#c4705a');
      pictureFrame(330, 120, 130, 160, '#5b86a5');
      lamp(1090, 190);
      fill(across(0, 420, 0, height, '#6d8f96', '#4b6a72'), () => c.roundRect(60, 430, 1000, 400, 70));
      fill('#e0b268', () => c.roundRect(140, 450, 190, 170, 40));
      plant(1190, 600, 250, '#d9cdb8', '#548a5f');
    },
    brick() {
      wall();
      for (let row = 0; row < 16; row += 1) {
        for (let column = -1; column < 12; column += 1) {
          box(random() < 0.5 ? light(person.wall, random(0, 0.18)) : dark(person.wall, random(0, 0.16)), column * 118 + (row % 2 ? 59 : 0), row * 47, 113, 42, 3);
        }
      }
      windowPane(900, -60, 300, 470, '#3d4245');
      shelf(40, 250, 400, '#6b4a35', { rows: 2, step: 190 });
      plant(1080, 640, 260, '#e5ded2', '#4d8555');
    },
    garden() {
      fill(across(0, 0, 0, height, '#b9dbe8', '#d5e5bd', '#86ad6c', '#568550'), () => c.rect(0, 0, width, height));
      for (let index = 0; index < 46; index += 1) {
        spot(['#7fae6a', '#9cc67e', '#5c8f57', '#b7d58f', '#f3e6a0', '#e79c8b'][Math.floor(random(0, index > 34 ? 6 : 4))], 0.85,
          random(0, width), random(160, height), random(40, 140));
      }
      spot('#fff7d6', 0.7, 980, 60, 420);
    },
  };

  // Clothes

  const { skin, hair, top } = person;
  const shade = dark(skin, 0.3);
  const bodyPath = both('M0 150 L50 152 C70 186 130 192 196 216 C262 240 290 300 306 620 L0 620 Z');
  const neckline = {
    tee: both('M0 90 L50 90 L54 164 C44 206 20 216 0 216 Z'),
    hoodie: both('M0 90 L50 90 L54 160 C44 196 20 204 0 204 Z'),
    sweater: both('M0 90 L50 90 L53 158 C40 184 20 188 0 188 Z'),
    shirt: both('M0 90 L50 90 L56 158 L0 268 Z'),
    blazer: both('M0 90 L50 90 L56 158 L0 268 Z'),
  }[person.clothes];

  function drawBody() {
    fill(across(-300, 0, 300, 0, light(top, 0.14), top, dark(top, 0.28)), bodyPath);
    inside(bodyPath, () => {
      mirrored(() => {
        line(dark(top, 0.4, 0.5), 7, new Path2D('M214 620 C206 520 212 450 232 400'));
        spot(parts(top).some((value) => value > 90) ? '#1a0d12' : '#000000', 0.22, 150, 560, 110, 200);
        spot('#ffffff', 0.1, 150, 235, 120, 50);
        line(dark(top, 0.35, 0.25), 5, new Path2D('M96 290 C130 300 160 330 172 372'));
      });
      if (person.clothes === 'sweater') {
        for (let x = -300; x <= 300; x += 15) line(dark(top, 0.25, 0.28), 3, () => { c.moveTo(x * 0.7, 190); c.lineTo(x, 620); });
      }
    });
    fill(across(-60, 90, 60, 200, skin, dark(skin, 0.2)), neckline);
    inside(neckline, () => {
      spot('#3a1410', 0.55, 6, 118, 82, 52);
      mirrored(() => line(dark(skin, 0.35, 0.35), 4, new Path2D('M10 206 C24 198 40 190 60 188')));
    });
    const collar = {
      tee: () => line(dark(top, 0.18), 13, new Path2D('M-57 160 C-46 212 -20 222 0 222 C20 222 46 212 57 160')),
      sweater: () => {
        fill(across(-70, 0, 70, 0, light(top, 0.08), dark(top, 0.08), dark(top, 0.3)), new Path2D('M-54 134 C-44 172 44 172 54 134 C60 150 68 164 78 182 C44 216 -44 216 -78 182 C-68 164 -60 150 -54 134 Z'));
        line(light(top, 0.16), 4, new Path2D('M-54 136 C-44 172 44 172 54 136'));
      },
      hoodie: () => {
        mirrored((side) => {
          fill(side < 0 ? light(top, 0.1) : dark(top, 0.16), new Path2D('M52 118 C96 128 124 168 104 206 C84 232 40 240 0 228 C36 214 54 190 52 118 Z'));
          line('#f3efe8', 5, new Path2D('M34 226 C36 270 32 300 36 336'));
        });
      },
      shirt: () => {
        mirrored((side) => {
          line(dark(top, 0.3, 0.6), 3, new Path2D('M0 268 L0 620'));
          fill(side < 0 ? light(top, 0.3) : light(top, 0.1), new Path2D('M52 134 L74 168 L62 262 L0 262 L48 188 Z'));
          line(dark(top, 0.3, 0.35), 2.5, new Path2D('M74 168 L62 262 L2 262'));
        });
        for (const y of [300, 372, 444]) fill(dark(top, 0.35), () => oval(0, y, 4.5));
      },
      blazer: () => {
        fill('#f5f0e8', new Path2D('M-56 160 L-30 400 L30 400 L56 160 L0 268 Z'));
        mirrored((side) => {
          fill(side < 0 ? light(top, 0.16) : dark(top, 0.12), new Path2D('M54 140 L92 176 L128 282 L92 300 L104 326 L2 560 L2 400 Z'));
          line(dark(top, 0.45, 0.5), 2.5, new Path2D('M92 176 L128 282 L92 300 L104 326 L2 560'));
        });
        fill(across(-60, 90, 60, 200, skin, dark(skin, 0.2)), neckline);
        inside(neckline, () => spot('#3a1410', 0.55, 6, 118, 82, 52));
      },
    }[person.clothes];
    collar();
  }

  // The head: 0, 0 is between the cheeks, the crown is at -132 and the chin at 136.

  const jaw = 8 * (person.jaw ?? 0.4);
  const headPath = both(`M0 -134 C64 -134 106 -92 103 -28 C102 24 ${96 + jaw} 62 ${66 + jaw} 102 C${46 + jaw} 126 24 137 0 137 Z`);
  const hairShapes = {
    short: {
      front: 'M-107 -6 C-126 -84 -98 -168 4 -168 C96 -168 128 -88 107 -6 C101 -22 98 -50 90 -76 C66 -70 58 -92 52 -104 C46 -84 20 -78 -2 -84 C-14 -88 -20 -94 -24 -100 C-34 -82 -62 -72 -88 -68 C-98 -48 -101 -24 -107 -6 Z', part: [60, -176],
    },
    quiff: {
      front: 'M-106 -4 C-120 -60 -116 -104 -92 -128 C-88 -176 -20 -196 34 -186 C92 -180 126 -140 116 -84 C114 -52 110 -26 106 -4 C101 -22 98 -50 92 -70 C70 -98 40 -100 8 -96 C-30 -92 -62 -94 -84 -74 C-96 -50 -100 -24 -106 -4 Z', part: [90, -190],
    },
    bob: {
      back: 'M-112 -40 C-130 -150 -60 -172 0 -172 C60 -172 130 -150 112 -40 C126 20 132 80 118 142 C90 158 70 148 58 130 L-58 130 C-70 148 -90 158 -118 142 C-132 80 -126 20 -112 -40 Z',
      front: 'M-110 30 C-132 -70 -112 -172 0 -174 C112 -172 132 -70 110 30 C104 -6 100 -34 90 -58 C70 -54 -16 -58 -44 -66 C-62 -64 -80 -58 -90 -52 C-100 -30 -104 0 -110 30 Z', part: [10, -180],
    },
    long: {
      back: 'M-112 -40 C-134 -150 -60 -174 0 -174 C60 -174 134 -150 112 -40 C124 40 150 120 150 230 C152 290 120 330 84 320 L-84 320 C-120 330 -152 290 -150 230 C-150 120 -124 40 -112 -40 Z',
      front: 'M-108 60 C-136 -70 -108 -174 4 -176 C108 -174 136 -70 108 60 C108 0 100 -40 74 -74 C44 -96 14 -118 -6 -140 C-24 -112 -58 -92 -80 -66 C-102 -34 -108 10 -108 60 Z', part: [-6, -176],
    },
    waves: {
      back: 'M-110 -50 C-150 -140 -66 -182 0 -180 C66 -182 150 -140 118 -40 C150 -10 120 30 146 66 C166 100 130 130 150 170 C158 214 110 232 76 214 L-76 214 C-110 232 -158 214 -150 170 C-130 130 -166 100 -146 66 C-120 30 -150 -10 -110 -50 Z',
      front: 'M-112 50 C-140 -60 -112 -180 20 -182 C116 -178 138 -66 112 44 C112 0 104 -38 88 -64 C60 -84 56 -112 40 -138 C10 -100 -50 -84 -84 -62 C-108 -30 -106 10 -112 50 Z', part: [40, -180],
    },
    bun: {
      bun: [0, -186, 62, 52],
      front: 'M-107 6 C-126 -80 -100 -166 0 -166 C100 -166 126 -80 107 6 C104 -34 96 -66 72 -92 C46 -112 20 -118 0 -118 C-20 -118 -46 -112 -72 -92 C-96 -66 -104 -34 -107 6 Z', part: [0, -180],
    },
    curly: { curls: true, front: 'M-100 -40 C-120 -150 -60 -168 0 -168 C60 -168 120 -150 100 -40 C92 -70 70 -92 0 -96 C-70 -92 -92 -70 -100 -40 Z', part: [0, -170] },
    cropped: {
      front: 'M-104 -16 C-116 -92 -84 -150 0 -150 C84 -150 116 -92 104 -16 C98 -46 96 -66 86 -86 C60 -104 30 -108 0 -108 C-30 -108 -60 -104 -86 -86 C-96 -66 -98 -46 -104 -16 Z', part: [0, -150],
    },
    scarf: null,
  };
  const shape = hairShapes[person.style];

  const strands = (path, [x, y], count = 34, reach = 420) => inside(path, () => {
    for (let index = 0; index < count; index += 1) {
      const angle = Math.PI * (-0.12 + (1.24 * index) / (count - 1));
      const [toX, toY] = [x + Math.cos(angle) * reach * 0.5, y + Math.sin(angle) * reach];
      const [midX, midY] = [x + Math.cos(angle) * 170, y + 40 + Math.sin(angle) * 60];
      line(index % 3 ? dark(hair, 0.45, 0.2) : light(hair, 0.4, 0.22), index % 3 ? 3 : 4, () => {
        c.moveTo(x, y);
        c.quadraticCurveTo(midX, midY, toX, toY);
      });
    }
    spot('#ffe9d2', 0.3, -38, -128, 74, 30);
  });
  const curls = [...Array(66)].map((_, index) => {
    const [row, place] = [Math.floor(index / 22), (index % 22) / 21];
    // Behind the head, above it, and over the forehead.
    const angle = Math.PI * [0.86 + 1.28 * place, 1.0 + place, 1.14 + 0.72 * place][row];
    const far = [random(122, 146), random(108, 128), random(88, 104)][row];
    return { x: Math.cos(angle) * far, y: -52 + Math.sin(angle) * far * 0.98, size: random(22, [40, 34, 28][row]), tone: random() };
  });
  const drawCurls = (list) => {
    for (const { x, y, size, tone } of list) {
      fill(glow(x - size * 0.3, y - size * 0.3, size * 1.4, light(hair, 0.14 + tone * 0.12), hair, dark(hair, 0.4)), () => oval(x, y, size));
      line(light(hair, 0.35, 0.25), 2.5, () => c.arc(x, y, size * 0.6, 3.4, 5));
    }
  };

  function drawHairBehind() {
    if (shape?.curls) drawCurls(curls.slice(0, 22));
    if (shape?.back) {
      const path = new Path2D(shape.back);
      fill(across(0, -170, 0, 320, hair, dark(hair, 0.45)), path);
      strands(path, shape.part, 40, 620);
    }
    if (shape?.bun) {
      const [x, y, wide, high] = shape.bun;
      const path = new Path2D();
      path.ellipse(x, y, wide, high, 0, 0, 7);
      fill(glow(x - 20, y - 20, 90, light(hair, 0.25), hair, dark(hair, 0.35)), path);
      strands(path, [x, y + 50], 14, 120);
    }
    if (person.style === 'scarf') {
      fill(across(-140, 0, 150, 0, light(hair, 0.12), hair, dark(hair, 0.3)),
        new Path2D('M-128 0 C-140 -130 -70 -178 0 -178 C70 -178 140 -130 128 0 C132 80 150 160 196 236 C120 290 -120 290 -196 236 C-150 160 -132 80 -128 0 Z'));
    }
  }

  function drawHair() {
    if (person.style === 'scarf') {
      const path = new Path2D();
      path.addPath(new Path2D('M-128 0 C-140 -130 -70 -178 0 -178 C70 -178 140 -130 128 0 C132 66 122 150 96 190 C150 210 170 250 176 300 C90 330 -90 330 -176 300 C-170 250 -150 210 -96 190 C-122 150 -132 66 -128 0 Z M0 -112 C-56 -112 -92 -72 -92 -16 C-92 50 -72 116 0 132 C72 116 92 50 92 -16 C92 -72 56 -112 0 -112 Z'));
      c.fillStyle = across(-150, -100, 150, 250, light(hair, 0.2), hair, dark(hair, 0.3));
      c.fill(path, 'evenodd');
      for (const [thick, text] of /** @type {[number, string][]} */ ([
        [4, 'M-104 -60 C-90 -130 -40 -150 10 -150'], [4, 'M-112 30 C-100 110 -60 160 0 176 C50 168 90 130 108 70'],
        [5, 'M-120 236 C-60 196 -20 190 70 172'], [5, 'M-150 280 C-70 230 0 226 120 214'], [4, 'M108 -40 C96 -110 60 -140 20 -150'],
      ])) {
        line(dark(hair, 0.4, 0.35), thick, new Path2D(text));
      }
      line(light(hair, 0.45, 0.5), 4, new Path2D('M-92 -16 C-92 -72 -56 -112 0 -112 C56 -112 92 -72 92 -16'));
      return;
    }
    if (!shape) return;
    const path = new Path2D(shape.front);
    c.save();
    c.filter = 'blur(7px)';
    inside(headPath, () => {
      c.translate(0, 9);
      fill('rgb(40 12 8 / 40%)', path);
    });
    c.restore();
    fill(across(-80, -170, 90, 40, light(hair, 0.16), hair, dark(hair, 0.3)), path);
    if (person.style !== 'cropped') strands(path, shape.part);
    if (shape.curls) drawCurls(curls.slice(22));
    if (person.style === 'cropped') {
      inside(path, () => { for (let dot = 0; dot < 260; dot += 1) fill(light(hair, 0.3, 0.16), () => oval(random(-110, 110), random(-155, -20), 2.4)); });
    }
  }

  function drawEars() {
    mirrored((side) => {
      fill(side < 0 ? skin : dark(skin, 0.16), new Path2D('M98 -34 C124 -48 130 -16 122 8 C116 30 104 36 96 26 Z'));
      line(dark(skin, 0.4, 0.5), 3.5, new Path2D('M106 -24 C117 -28 118 -10 113 4'));
      if (person.earrings) fill(person.earrings, () => oval(112, 40, 6.5, 9));
    });
  }

  function drawHead() {
    c.fillStyle = glow(-34, -40, 230, light(skin, 0.2), skin, dark(skin, 0.12), dark(skin, 0.34));
    c.fill(headPath);
    inside(headPath, () => {
      spot('#3a1410', 0.2, 112, 30, 70, 150);
      spot('#ffe9d2', 0.26, -44, -84, 76, 44);
      mirrored(() => {
        spot('#e2543c', person.lashes ? 0.19 : 0.12, 60, 40, 40, 30);
        spot('#3a1410', 0.17, 40, -22, 38, 22);
      });
      spot('#3a1410', 0.2, 0, 132, 66, 18);
      spot('#ffe9d2', 0.2, -4, 112, 22, 12);
      if (person.old) {
        mirrored(() => {
          line(dark(skin, 0.4, 0.3), 2.5, new Path2D('M26 50 C42 58 48 70 50 84'));
          line(dark(skin, 0.4, 0.26), 2, new Path2D('M72 -14 L86 -20 M74 -6 L90 -6 M26 20 C38 24 50 22 60 14'));
        });
        for (const y of [-74, -60]) line(dark(skin, 0.4, 0.16), 2.5, new Path2D(`M-40 ${y} C-14 ${y - 6} 14 ${y - 6} 40 ${y}`));
      }
    });
  }

  function drawBeard() {
    if (!person.beard) return;
    if (person.beard === 'stubble') {
      inside(headPath, () => {
        spot(hair, 0.4, 0, 112, 92, 52);
        mirrored(() => spot(hair, 0.25, 76, 62, 34, 56));
        spot(hair, 0.28, 0, 58, 44, 14);
      });
      return;
    }
    if (person.beard === 'full') {
      const path = new Path2D();
      path.addPath(both(`M0 58 C20 52 40 60 50 74 C64 62 88 40 104 -14 C110 40 ${102 + jaw} 84 ${72 + jaw} 118 C${50 + jaw} 146 24 154 0 154 Z`));
      fill(across(-90, 0, 100, 150, light(hair, 0.12), hair, dark(hair, 0.35)), path);
      inside(path, () => {
        for (let index = 0; index < 90; index += 1) {
          const [x, y] = [random(-104, 104), random(20, 150)];
          line(index % 2 ? light(hair, 0.3, 0.22) : dark(hair, 0.5, 0.25), 2.2, () => { c.moveTo(x, y); c.lineTo(x * 1.02, y + 14); });
        }
      });
    }
    fill(dark(hair, 0.1), both('M0 54 C16 48 38 56 50 74 C34 70 16 68 0 68 Z'));
  }

  function drawEyes(open) {
    const iris = person.iris ?? '#5b3a22';
    for (const side of [-1, 1]) {
      c.save();
      c.translate(side * 43, -8);
      const out = side; // the outer corner is to this side
      const upper = `M${-22 * out} 4 C${-12 * out} ${-15 * open} ${10 * out} ${-18 * open} ${23 * out} ${-2}`;
      const eye = new Path2D(`${upper} C${12 * out} ${11 * open} ${-10 * out} ${12 * open} ${-22 * out} 4 Z`);
      fill('#fbf6f0', eye);
      inside(eye, () => {
        fill(glow(0, -3, 13, light(iris, 0.25), iris, dark(iris, 0.45)), () => oval(0, -2, 12.5));
        fill('#140a08', () => oval(0, -2, 6));
        fill(across(0, -16, 0, 2, 'rgb(30 10 10 / 55%)', 'rgb(30 10 10 / 0%)'), () => c.rect(-26, -16, 52, 16));
        fill('#ffffff', () => oval(-4, -6, 3.4));
        fill('rgb(255 255 255 / 60%)', () => oval(4.5, 2, 1.8));
      });
      line(dark(skin, 0.55, 0.35), 2.2, new Path2D(`M${-16 * out} 8 C${-6 * out} ${12 * open + 1} ${10 * out} ${11 * open} ${21 * out} 1`));
      line('#21110c', person.lashes ? 5 : 3.8, new Path2D(upper));
      if (person.lashes) line('#21110c', 3.6, new Path2D(`M${20 * out} -3 Q${25 * out} -5 ${29 * out} -9`));
      line(dark(skin, 0.5, 0.4), 2.6, new Path2D(`M${-20 * out} -10 C${-10 * out} -22 ${10 * out} -24 ${23 * out} -12`));
      c.restore();
    }
  }

  function drawBrows() {
    const color = person.style === 'scarf' ? '#2a1a14' : person.old ? dark(hair, 0.35) : dark(hair, 0.3);
    mirrored(() => fill(color, new Path2D(person.lashes
      ? 'M18 -44 C30 -55 54 -59 75 -44 C56 -52 38 -50 20 -40 Z'
      : 'M16 -42 C24 -53 54 -59 77 -43 C58 -49 36 -47 18 -37 Z')));
  }

  function drawNose() {
    line(dark(skin, 0.42, 0.32), 4, new Path2D('M12 -20 C12 2 16 18 20 30'));
    spot('#ffeedd', 0.32, -5, 12, 8, 30);
    spot('#ffeedd', 0.38, -3, 34, 12, 9);
    line(dark(skin, 0.5, 0.62), 3.6, new Path2D('M-19 36 C-24 44 -16 49 -9 46 C-4 50 4 50 9 46 C16 49 24 44 19 36'));
    spot('#3a1410', 0.24, 4, 53, 22, 8);
  }

  function drawMouth(talking) {
    const lips = person.lips ?? mix(skin, '#a8433c', 0.42);
    const kind = person.mouth;
    const deep = { smile: 0, laugh: 30, talk: 6 + 14 * talking }[kind];
    c.save();
    c.translate(0, 80);
    if (kind === 'smile') {
      fill(dark(lips.startsWith('#') ? lips : skin, 0.05), new Path2D('M-38 -6 C-20 -9 -10 -14 -4 -13 L0 -11 L4 -13 C10 -14 20 -9 38 -6 C20 6 -20 6 -38 -6 Z'));
      fill(lips, new Path2D('M-36 -3 C-18 6 18 6 36 -3 C22 22 -22 22 -36 -3 Z'));
      fill('rgb(255 240 230 / 28%)', () => oval(-4, 7, 12, 3));
      line('rgb(60 14 14 / 75%)', 3, new Path2D('M-41 -8 C-22 6 22 6 41 -8'));
    } else {
      const wide = kind === 'laugh' ? 41 : 30;
      const outline = new Path2D(`M${-wide} -6 C${-wide / 2} 1 ${wide / 2} 1 ${wide} -6 C${wide * 0.7} ${deep + 7} ${-wide * 0.7} ${deep + 7} ${-wide} -6 Z`);
      fill('#5a1a1e', outline);
      inside(outline, () => {
        fill('#d8706c', () => oval(0, deep + 2, wide * 0.5, 9));
        fill('#fffaf4', new Path2D(`M${-wide} -8 C${-wide / 2} 1 ${wide / 2} 1 ${wide} -8 L${wide * 0.86} 4 C${wide / 2} ${deep * 0.3 + 7} ${-wide / 2} ${deep * 0.3 + 7} ${-wide * 0.86} 4 Z`));
      });
      line(lips, 5.5, outline);
      fill(lips, new Path2D(`M${-wide} -6 C${-wide / 2} -10 -9 -14 -4 -12 L0 -10 L4 -12 C9 -14 ${wide / 2} -10 ${wide} -6 C${wide / 2} 2 ${-wide / 2} 2 ${-wide} -6 Z`));
      spot('#3a1410', 0.2, 0, deep + 14, 22, 6);
    }
    mirrored(() => line(dark(skin, 0.45, 0.5), 3, new Path2D(kind === 'talk' ? 'M35 -8 C38 -6 39 -3 38 0' : 'M43 -13 C47 -9 47 -4 45 0')));
    c.restore();
  }

  function drawExtras() {
    if (person.glasses) {
      mirrored(() => {
        const lens = new Path2D();
        lens.roundRect(10, -38, 70, 60, 26);
        fill('rgb(255 255 255 / 10%)', lens);
        line('#2b2523', 5.5, lens);
        line('#2b2523', 5, new Path2D('M78 -16 L106 -22'));
        line('rgb(255 255 255 / 38%)', 4, new Path2D('M26 -18 L40 -28'));
      });
      line('#2b2523', 5, new Path2D('M-12 -14 C-6 -20 6 -20 12 -14'));
    }
    if (person.headphones) {
      line(dark(person.headphones, 0.25), 22, () => c.arc(0, -34, 136, Math.PI * 1.06, Math.PI * 1.94));
      line(light(person.headphones, 0.3, 0.6), 6, () => c.arc(0, -34, 141, Math.PI * 1.15, Math.PI * 1.6));
      mirrored((side) => {
        fill(across(96, 0, 144, 0, dark(person.headphones, 0.35), side < 0 ? light(person.headphones, 0.2) : person.headphones), () => c.roundRect(98, -50, 42, 96, 20));
      });
    }
  }

  const aim = () => c.setTransform(zoom, 0, 0, zoom, (shownWidth - width * zoom) / 2, (shownHeight - height * zoom) / 2);

  // The room is drawn once, out of focus.
  const background = canvas();
  c = /** @type {CanvasRenderingContext2D} */ (background.getContext('2d'));
  aim();
  places[person.place]();
  const room = canvas();
  c = /** @type {CanvasRenderingContext2D} */ (room.getContext('2d'));
  const blur = 8 * zoom;
  c.filter = `blur(${blur}px)`;
  // Larger, because blurred edges are transparent.
  c.drawImage(background, -3 * blur, -3 * blur, shownWidth + 6 * blur, shownHeight + 6 * blur);
  c.filter = 'none';
  fill(glow(shownWidth / 2, shownHeight * 0.45, Math.hypot(shownWidth, shownHeight) * 0.6, 'rgb(20 10 5 / 0%)', 'rgb(20 10 5 / 4%)', 'rgb(20 10 5 / 34%)'),
    () => c.rect(0, 0, shownWidth, shownHeight));

  const figure = canvas();
  const start = seed;
  const phase = random(0, 6);
  return (context, seconds, isBlinking = false) => {
    seed = start;
    const time = seconds + phase;
    c = /** @type {CanvasRenderingContext2D} */ (figure.getContext('2d'));
    c.resetTransform();
    c.clearRect(0, 0, shownWidth, shownHeight);
    aim();
    c.save();
    c.translate(width / 2 + 5 * Math.sin(time * 0.9), 330 + 3 * Math.sin(time * 1.3));
    c.scale(person.scale ?? 1.28, person.scale ?? 1.28);
    c.rotate(0.008 * Math.sin(time * 0.7));
    const tilted = (task) => {
      c.save();
      c.translate(0, 120);
      c.rotate((person.tilt ?? 0) + 0.02 * Math.sin(time * 0.6));
      c.translate(0, -120);
      task();
      c.restore();
    };
    tilted(drawHairBehind);
    drawBody();
    tilted(() => {
      if (!['scarf', 'bob', 'long', 'waves'].includes(person.style)) drawEars();
      drawHead();
      drawBeard();
      drawNose();
      drawMouth(Math.abs(Math.sin(time * 7)));
      drawEyes(isBlinking ? 0.12 : person.mouth === 'laugh' ? 0.8 : 1);
      drawBrows();
      drawHair();
      drawExtras();
    });
    c.restore();
    // The window is on the left.
    c.globalCompositeOperation = 'source-atop';
    fill(across(width * 0.25, 0, width * 0.78, 0, 'rgb(255 236 205 / 20%)', 'rgb(255 236 205 / 0%)', 'rgb(30 14 40 / 20%)'), () => c.rect(0, 0, width, height));
    c.globalCompositeOperation = 'source-over';
    context.drawImage(room, 0, 0);
    context.drawImage(figure, 0, 0);
  };
}
