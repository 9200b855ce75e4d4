// Computes where each video of a room is on the screen. Takes sizes and counts, and returns rectangles. The rules are
// in docs/layout.md. Every client uses them, so this module does not depend on the web page.

/** @typedef {'auto' | 'grid' | 'speaker' | 'pinned'} Layout */
/** @typedef {'topLeft' | 'topRight' | 'bottomLeft' | 'bottomRight'} Corner */
/** @typedef {number | null | undefined} Aspect width divided by height; null or undefined while it is unknown */
/** @typedef {{id: string, aspect?: Aspect, isScreen?: boolean}} Tile */
/** @typedef {{x: number, y: number, width: number, height: number}} Rectangle whole pixels */
/** @typedef {Rectangle & {id: string, fit: 'cover' | 'contain'}} PlacedTile */
/**
 * @typedef {object} LayoutInput
 * @property {number} width of the viewport, in pixels
 * @property {number} height
 * @property {Layout} [layout] default: `auto`
 * @property {Tile[]} tiles the videos of everyone else, in display order
 * @property {string | string[]} [focus] the id of the active speaker's tile, or the ids of the pinned tiles
 * @property {{aspect?: Aspect, corner?: Corner}} [self] the self-view, if it is shown
 * @property {number} [gap] the space between tiles, in pixels; default: 8
 * @property {number} [page] the page to show, from 0; beyond the last page, the last one is shown
 */
/**
 * @typedef {object} LayoutOutput
 * @property {PlacedTile[]} tiles
 * @property {(Rectangle & {fit: 'cover' | 'contain'}) | null} self the self-view; null if it is not shown
 * @property {number} overflow the number of tiles on other pages
 * @property {number} page the page that is shown, from 0
 * @property {number} pages the number of pages
 */

/**
 * Minimum size of a tile, in pixels. A face is still recognizable at this size, and nine such tiles fit into 320×240.
 */
const least = { width: 96, height: 72 };
/**
 * Maximum number of tiles on a page of a grid. This is the default capacity of a room, and ordinary computers can
 * decode this many videos.
 */
const maxTiles = 25;
/** Maximum number of pinned tiles. Four still have the minimum size on the smallest viewport. */
const maxPinned = 4;
/** Maximum number of strips side by side. With a fourth, each would show only a third of an ordinary video. */
const maxStrips = 3;
const defaultGap = 8;
/**
 * If there are two videos and only one of them matches the viewport's orientation (landscape or portrait): the share
 * of the viewport that the matching video gets.
 */
const matchingShare = 0.55;
/** The range of aspects at which a tile shows a face well: from portrait to landscape. */
const narrowest = 3 / 4;
const widest = 16 / 9;
/** The aspect to assume for a video of unknown size. Most cameras have it, so most tiles do not move once the size is known. */
const usualAspect = 16 / 9;
/**
 * A video is cropped only if at least this share of it stays visible. This is chosen so that a 16:9 video is still
 * cropped in a 3:4 tile.
 */
const leastVisible = narrowest / widest;
/**
 * The self-view may cover at most this share of a grid tile. If it would cover more, it becomes a tile of the grid.
 */
const maxCovered = 0.2;
/**
 * The size of the strip beside the large tiles: its share of the viewport, and its maximum in pixels, which is the
 * width if the strip is on the right and the height if it is below.
 */
const stripShare = 0.2;
const maxStrip = { width: 240, height: 180 };
/** Distance between the self-view and the edges of the area whose corner it is in, in pixels. */
const padding = 10;
/** @type {Corner} */
const defaultCorner = 'bottomRight';

/** @param {LayoutInput} input @returns {LayoutOutput} */
export function layOut(input) {
  const { tiles, layout = 'auto', self } = input;
  const [width, height] = [sideOf(input.width), sideOf(input.height)];
  const viewport = { x: 0, y: 0, width: Math.floor(width), height: Math.floor(height) };
  const wanted = input.gap !== undefined && Number.isFinite(input.gap) ? input.gap : defaultGap;
  const gap = Math.max(0, Math.floor(Math.min(wanted, width / 20, height / 20)));
  const space = { viewport, gap, page: input.page ?? 0 };
  const own = self ? { ...self, ...placeSelf(viewport, self, tiles.length === 0) } : null;
  const { tiles: placed, page, pages, self: tile } = place(space, tiles, layout, [input.focus ?? []].flat(), own);
  return { tiles: placed, page, pages, overflow: tiles.length - placed.length, self: own && rectangleOf(tile ?? own) };
}

/**
 * Returns the length of a side of the viewport, or 0 if the given length is negative or not a finite number. A page
 * may pass a negative height if its window is too small for the controls below the videos.
 * @param {number} value
 */
const sideOf = (value) => (Number.isFinite(value) ? Math.max(0, value) : 0);

/** @typedef {{viewport: Rectangle, gap: number, page: number}} Space */
/** @typedef {Omit<PlacedTile, 'id'>} PlacedSelf */
/** @typedef {PlacedSelf & {aspect?: Aspect, corner?: Corner}} Own */
/** @typedef {{tiles: PlacedTile[], page: number, pages: number, self?: PlacedSelf}} Placed `self`: only if the self-view is not in its corner of the viewport */

/** @param {PlacedSelf} placed @returns {PlacedSelf} */
const rectangleOf = ({ x, y, width, height, fit }) => ({ x, y, width, height, fit });

/** @param {Space} space @param {Tile[]} tiles @param {Layout} layout @param {string[]} focus @param {Own | null} own @returns {Placed} */
function place(space, tiles, layout, focus, own) {
  const whole = (/** @type {PlacedTile[]} */ all) => ({ tiles: all, page: 0, pages: 1 });
  if (tiles.length <= 1) return whole(tiles.map((tile) => fitted(tile, space.viewport)));
  const large = largeOf(tiles, layout, focus);
  if (large.length > 0) return withStrip(space, large, tiles.filter((tile) => !large.includes(tile)), own);
  if (layout === 'auto' && tiles.length <= maxStrips) {
    const placed = strips(space, tiles);
    if (tiles.length === 2 || placed.every((one, index) => isCropped(tiles[index], one))) return whole(placed);
  }
  return ownedGrid(space, tiles, own);
}

/**
 * Returns the tiles to show large, beside a strip of the others. Returns none for the layout `grid`, and for `auto` if
 * no screen is shared.
 * @param {Tile[]} tiles
 * @param {Layout} layout
 * @param {string[]} focus
 */
function largeOf(tiles, layout, focus) {
  const chosen = focus.flatMap((id) => tiles.find((tile) => tile.id === id) ?? []);
  const screen = tiles.filter(({ isScreen }) => isScreen).slice(0, 1);
  switch (layout) {
    case 'grid': return [];
    case 'auto': return screen;
    case 'speaker': return [...screen, ...chosen, tiles[0]].slice(0, 1);
    default: return chosen.length > 0 ? [...new Set(chosen)].slice(0, maxPinned) : [...screen, tiles[0]].slice(0, 1);
  }
}

/**
 * Divides tiles among pages, and arranges those of the requested page, or of the nearest page that exists.
 * @param {Space} space
 * @param {Tile[]} tiles
 * @param {number} capacity the maximum number of tiles on a page
 * @param {(part: Tile[]) => PlacedTile[]} arrange
 * @returns {Placed}
 */
function pageOf({ page: wanted }, tiles, capacity, arrange) {
  const pages = Math.max(1, Math.ceil(tiles.length / capacity));
  const page = Math.min(Math.max(0, Math.floor(wanted)), pages - 1);
  return { tiles: arrange(tiles.slice(page * capacity, (page + 1) * capacity)), page, pages };
}

// ---- Grid

/** Returns how many parts of a size, with gaps between them, fit in a length. Returns at least one. */
const partsIn = (/** @type {number} */ length, /** @type {number} */ size, /** @type {number} */ gap) => (
  Math.max(1, Math.floor((length + gap) / (size + gap))));

/** @param {Space} space */
function gridCapacity({ viewport: { width, height }, gap }) {
  return Math.min(maxTiles, partsIn(width, least.width, gap) * partsIn(height, least.height, gap));
}

/**
 * Places a grid. If its tiles are so small that the self-view would hide people, the self-view becomes a tile too, on every page and
 * in the cell nearest to its corner. Exception: if a page has room for only one tile, the self-view stays in its
 * corner.
 * @param {Space} space
 * @param {Tile[]} tiles
 * @param {Own | null} own
 * @returns {Placed}
 */
function ownedGrid(space, tiles, own) {
  const { viewport, gap } = space;
  const capacity = gridCapacity(space);
  const [cell] = grid(viewport, gap, tiles.slice(0, capacity));
  if (own === null || capacity < 2 || !hidesPeople(own, cell)) return pageOf(space, tiles, capacity, (part) => grid(viewport, gap, part));
  /** @type {PlacedTile[]} */
  let placed = [];
  let at = 0;
  const { page, pages } = pageOf(space, tiles, capacity - 1, (part) => {
    const self = { id: '', aspect: own.aspect };
    const columns = columnsFor(viewport, gap, [...part, self]);
    at = cellAt(own.corner ?? defaultCorner, columns, part.length);
    placed = grid(viewport, gap, [...part.slice(0, at), self, ...part.slice(at)], columns);
    return placed;
  });
  return { tiles: placed.filter((_, index) => index !== at), page, pages, self: { ...placed[at], fit: 'cover' } };
}

/**
 * Returns whether the self-view, in its corner, covers too much of a tile or parts of several tiles.
 * @param {Rectangle} own
 * @param {Rectangle} tile
 */
function hidesPeople(own, tile) {
  const [width, height] = [own.width + padding, own.height + padding];
  return width > tile.width || height > tile.height || width * height > maxCovered * tile.width * tile.height;
}

/**
 * Returns the index of the cell in a corner: the first or last one of the first or last row.
 * @param {Corner} corner
 * @param {number} columns
 * @param {number} others the number of other cells
 */
function cellAt(corner, columns, others) {
  const isLeft = corner.endsWith('Left');
  if (corner.startsWith('top')) return isLeft ? 0 : Math.min(columns - 1, others);
  return isLeft ? Math.floor(others / columns) * columns : others;
}

/**
 * Places tiles in a grid, by default with the number of columns at which people are largest. The last row is centered.
 * @param {Rectangle} area
 * @param {number} gap
 * @param {Tile[]} tiles
 * @param {number} [columns]
 * @returns {PlacedTile[]}
 */
function grid(area, gap, tiles, columns = columnsFor(area, gap, tiles)) {
  const rows = Math.ceil(tiles.length / columns);
  const [lines, cells] = [split(area.height, gap, equal(rows)), split(area.width, gap, equal(columns))];
  return tiles.map((tile, index) => {
    const row = Math.floor(index / columns);
    const missing = row === rows - 1 ? rows * columns - tiles.length : 0;
    const shift = Math.floor(missing * (cells[0].size + gap) / 2);
    const [line, cell] = [lines[row], cells[index % columns]];
    const size = missing ? cells[0].size : cell.size;
    return fitted(tile, { x: area.x + cell.start + shift, y: area.y + line.start, width: size, height: line.size });
  });
}

/**
 * Returns the number of columns at which people are largest. If the tiles are below the minimum height with every
 * number, returns the largest number that fits.
 * @param {Rectangle} area
 * @param {number} gap
 * @param {Tile[]} tiles
 */
function columnsFor({ width, height }, gap, tiles) {
  const aspects = tiles.map(({ aspect }) => aspectOf(aspect, narrowest));
  const aspect = aspects.reduce((sum, one) => sum + one, 0) / aspects.length;
  const most = Math.min(tiles.length, partsIn(width, least.width, gap));
  let best = { columns: most, shown: -1 };
  for (let columns = 1; columns <= most; columns += 1) {
    const rows = Math.ceil(tiles.length / columns);
    const cell = { width: (width - gap * (columns - 1)) / columns, height: (height - gap * (rows - 1)) / rows };
    const shown = usefulArea(cell, aspect);
    if (Math.floor(cell.height) >= least.height && shown > best.shown) best = { columns, shown };
  }
  return best.columns;
}

/**
 * Returns the useful area of a cell: that of the largest part whose shape is between 3:4 and 16:9, because the rest of
 * the cell shows only more of the background. If the video would not be cropped in the cell, returns the area of the
 * video.
 * @param {{width: number, height: number}} cell
 * @param {number} aspect the aspect of the video
 */
function usefulArea({ width, height }, aspect) {
  const isWhole = visibleShare(aspect, width / height) < leastVisible;
  const [low, high] = isWhole ? [aspect, aspect] : [narrowest, widest];
  return Math.min(width, height * high) * Math.min(height, width / low);
}

// ---- Strips

/**
 * Places tiles next to each other along the long axis of the viewport, each as large as the viewport in the other
 * direction.
 * @param {Space} space
 * @param {Tile[]} tiles
 * @returns {PlacedTile[]}
 */
function strips({ viewport, gap }, tiles) {
  const isWide = viewport.width >= viewport.height;
  const matches = tiles.map(({ aspect }) => (aspectOf(aspect, 9 / 16) >= 1) === isWide);
  const isMixed = tiles.length === 2 && matches[0] !== matches[1];
  const shares = isMixed ? matches.map((does) => (does ? matchingShare : 1 - matchingShare)) : equal(tiles.length);
  return split(isWide ? viewport.width : viewport.height, gap, shares).map(({ start, size }, index) => ({
    id: tiles[index].id,
    ...isWide ? { x: start, y: 0, width: size, height: viewport.height } : { x: 0, y: start, width: viewport.width, height: size },
    fit: tiles[index].isScreen ? 'contain' : 'cover',
  }));
}

/**
 * Places large tiles with a strip of the others: on the right in a wide viewport, below in a tall one. Without others,
 * places a grid. If the strip has room for all others and the self-view, the self-view is at the end of the strip that
 * is nearest to its corner. Otherwise the self-view covers a corner of the large area; over the strip it would hide
 * people.
 * @param {Space} space
 * @param {Tile[]} large
 * @param {Tile[]} others
 * @param {Own | null} own
 * @returns {Placed}
 */
function withStrip(space, large, others, own) {
  const { viewport: { width, height }, gap } = space;
  if (others.length === 0) return ownedGrid(space, large, own);
  const isWide = width >= height;
  const length = isWide ? height : width;
  const [along, across] = isWide ? [least.height, least.width] : [least.width, least.height];
  const wanted = isWide ? between(across, width * stripShare, maxStrip.width) : between(across, height * stripShare, maxStrip.height);
  // Make the strip thinner if it would otherwise have no room for two tiles.
  const half = Math.max(along, Math.floor((length - gap) / 2));
  const side = Math.min(half, Math.floor(wanted * along / across));
  const thickness = side < half ? wanted : Math.min(wanted, Math.floor(half * across / along));
  const start = (isWide ? width : height) - thickness;
  const main = isWide ? { x: 0, y: 0, width: Math.max(0, start - gap), height } : { x: 0, y: 0, width, height: Math.max(0, start - gap) };
  const capacity = partsIn(length, side, gap);
  /** @param {Tile[]} part @returns {PlacedTile[]} */
  const arrange = (part) => {
    // Center the tiles along the strip.
    const first = Math.max(0, Math.floor((length - part.length * (side + gap) + gap) / 2));
    return part.map((tile, index) => {
      const at = first + index * (side + gap);
      return fitted(tile, isWide ? { x: start, y: at, width: thickness, height: side } : { x: at, y: start, width: side, height: thickness });
    });
  };
  const shown = grid(main, gap, large);
  if (own && others.length < capacity) {
    const { aspect, corner = defaultCorner } = own;
    const at = (isWide ? corner.startsWith('top') : corner.endsWith('Left')) ? 0 : others.length;
    const placed = arrange([...others.slice(0, at), { id: '', aspect }, ...others.slice(at)]);
    const [self] = placed.splice(at, 1);
    return { tiles: [...shown, ...placed], page: 0, pages: 1, self: { ...self, fit: 'cover' } };
  }
  const placed = pageOf(space, others, capacity, arrange);
  return { ...placed, tiles: [...shown, ...placed.tiles], ...own ? { self: { ...own, ...cornered(main, own, own.corner) } } : {} };
}

// ---- The self-view

/**
 * Returns where the self-view is, and how large: in its corner, unless it is alone.
 * @param {Rectangle} viewport
 * @param {{aspect?: Aspect, corner?: Corner}} self
 * @param {boolean} isAlone true: the self-view fills the viewport
 * @returns {Rectangle & {fit: 'cover' | 'contain'}}
 */
function placeSelf(viewport, { aspect, corner = defaultCorner }, isAlone) {
  if (isAlone) {
    const { id: _id, ...alone } = fitted({ id: '', aspect }, viewport);
    return alone;
  }
  const shorter = Math.min(viewport.width, viewport.height);
  const small = shorter < 400 ? 90 : shorter < 700 ? 105 : 168;
  const shape = aspectOf(aspect, 9 / 16);
  const [width, height] = shape >= 1 ? [small * shape, small] : [small, small / shape];
  // Limit the self-view to half of the viewport in each direction.
  const scale = Math.min(1, viewport.width / 2 / width, viewport.height / 2 / height);
  const size = { width: Math.floor(width * scale), height: Math.floor(height * scale) };
  return { ...cornered(viewport, size, corner), ...size, fit: 'cover' };
}

/**
 * Returns the position of a video in a corner of an area that begins at 0, 0.
 * @param {Rectangle} area
 * @param {{width: number, height: number}} size
 * @param {Corner} [corner]
 */
function cornered(area, { width, height }, corner = defaultCorner) {
  return {
    x: corner.endsWith('Left') ? padding : area.width - padding - width,
    y: corner.startsWith('top') ? padding : area.height - padding - height,
  };
}

// ----

/** @param {Tile} tile @param {Rectangle} rectangle @returns {PlacedTile} */
function fitted({ id, aspect, isScreen }, { x, y, width, height }) {
  return { id, x, y, width, height, fit: isCropped({ id, aspect, isScreen }, { width, height }) ? 'cover' : 'contain' };
}

/** @param {Tile} tile @param {{width: number, height: number}} size */
function isCropped({ aspect, isScreen }, { width, height }) {
  return !isScreen && visibleShare(aspectOf(aspect, 9 / 16), width / height) >= leastVisible;
}

/**
 * Returns the share of a video that remains visible after cropping.
 * @param {number} aspect
 * @param {number} there the aspect of the area that it fills
 */
const visibleShare = (aspect, there) => Math.min(aspect / there, there / aspect);

/**
 * Divides a length into parts with gaps between them. Rounds the edges so that the parts fill the length exactly.
 * @param {number} length
 * @param {number} gap
 * @param {number[]} shares of the length without gaps, one for each part; their sum is 1
 */
function split(length, gap, shares) {
  const free = length - gap * (shares.length - 1);
  let before = 0;
  return shares.map((share, index) => {
    const start = Math.floor(free * before + 1e-6);
    before += share;
    return { start: start + gap * index, size: Math.floor(free * before + 1e-6) - start };
  });
}

/** @param {number} count */
const equal = (count) => Array.from({ length: count }, () => 1 / count);

/** @param {number} low @param {number} value @param {number} high */
const between = (low, value, high) => Math.floor(Math.min(high, Math.max(low, value)));

/**
 * Limits an aspect to the range from `low` to `widest`. Returns the usual aspect if it is unknown.
 * @param {Aspect} aspect
 * @param {number} low
 */
const aspectOf = (aspect, low) => (
  aspect && aspect > 0 && Number.isFinite(aspect) ? Math.min(widest, Math.max(low, aspect)) : usualAspect);
