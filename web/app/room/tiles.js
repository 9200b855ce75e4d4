// The tiles of the stage: one for each other person, and one for each shared screen. The SDK's `layout.js` positions
// them.

import { personOf } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Stream} Stream */
/**
 * @typedef {object} Tile
 * @property {string} id the connectionId of a person, or the streamId of a screen
 * @property {string} connectionId
 * @property {string} name
 * @property {boolean} isScreen
 * @property {string | null} streamId the id of the stream to show; null if there is none
 * @property {boolean} hasVideo whether the stream has video
 * @property {boolean} isMuted
 * @property {boolean} isAway whether the person lost the connection and may return
 * @property {boolean} isUnseen whether the person's camera and microphone currently cannot be received
 * @property {boolean} hand whether the person's hand is raised
 * @property {boolean} isSpeaking
 * @property {boolean} isPinned
 * @property {boolean} isHost
 * @property {number | null} aspect width divided by height; null while it is unknown
 * @property {string[]} reactions
 */

/** @typedef {{x: number, y: number, width: number, height: number}} Rectangle */

/** @param {State} state @returns {Tile[]} screens first, then people in the order of joining; never the local user */
export function tilesOf(state) {
  const { room } = state;
  if (!room) return [];
  const { faults } = state;
  // Leave out failing streams, which would otherwise appear and disappear with each attempt to receive them.
  const streams = state.streams.filter(({ streamId }) => !faults.some(({ of }) => of === streamId));
  const others = room.people.filter(({ connectionId }) => connectionId !== room.me);
  const screens = streams.filter(({ isScreen, connectionId }) => isScreen && connectionId !== room.me);
  return [...screens.map((stream) => screenTile(state, stream)), ...others.map((person) => personTile({ ...state, streams }, person))];
}

/** @param {State} state @param {Stream} stream @returns {Tile} */
function screenTile(state, stream) {
  const person = state.room && personOf(state.room, stream.connectionId);
  return {
    id: stream.streamId, connectionId: stream.connectionId, name: person?.displayName ?? '', isScreen: true, streamId: stream.streamId,
    hasVideo: stream.hasVideo, isMuted: false, isUnseen: false, isAway: person?.state === 'reconnecting', hand: false, isSpeaking: false,
    isPinned: state.pinned === stream.streamId, isHost: false, aspect: stream.aspect, reactions: [],
  };
}

/** @param {State} state @param {import('./types.js').Person} person @returns {Tile} */
function personTile(state, { connectionId, displayName, role, state: is, handAt }) {
  const stream = state.streams.find((one) => one.connectionId === connectionId && !one.isScreen);
  const isUnseen = state.faults.some((fault) => fault.connectionId === connectionId && !fault.isScreen);
  return {
    id: connectionId, connectionId, name: displayName, isScreen: false, streamId: stream?.streamId ?? null,
    hasVideo: stream?.hasVideo ?? false, isMuted: !stream?.hasAudio && !isUnseen, isUnseen, isAway: is === 'reconnecting', hand: handAt !== undefined,
    isSpeaking: state.speaker === connectionId, isPinned: state.pinned === connectionId, isHost: role !== 'guest',
    aspect: stream?.aspect ?? null, reactions: reactionsOf(state, connectionId),
  };
}

/** Height of the strip at the bottom of a tile that shows the name, in CSS pixels. */
const nameHeight = 40;

/**
 * Returns how many pixels of the tile's name strip the self-view covers, counted from the left or from the right,
 * whichever is less. The other number is 0; both are 0 if the self-view does not cover the strip.
 * @param {Rectangle} tile
 * @param {Rectangle | null} own the rectangle of the self-view
 */
export function coveredEdge(tile, own) {
  const bottom = tile.y + tile.height;
  const [left, right] = own ? [own.x + own.width - tile.x, tile.x + tile.width - own.x] : [0, 0];
  if (!own || own.y >= bottom || own.y + own.height <= bottom - nameHeight || left <= 0 || right <= 0) return { left: 0, right: 0 };
  return left < right ? { left, right: 0 } : { left: 0, right };
}

/** @param {State} state @param {string} connectionId */
export const reactionsOf = (state, connectionId) => (
  state.reactions.filter((one) => one.connectionId === connectionId).map(({ reaction }) => reaction));

/**
 * Returns the layout to use, and the id of the tile in focus: the pinned one, otherwise the newest screen, otherwise
 * the active speaker's, otherwise the first. All layouts except a grid show this tile large. The id is undefined if
 * there are no tiles.
 * @param {State} state
 * @param {Tile[]} tiles
 * @returns {{layout: 'auto' | 'grid' | 'speaker' | 'pinned', focus: string | undefined}}
 */
export function arrangement(state, tiles) {
  const pinned = tiles.find(({ isPinned }) => isPinned);
  if (pinned) return { layout: 'pinned', focus: pinned.id };
  const screen = tiles.filter(({ isScreen }) => isScreen).at(-1);
  const { layout } = state.kept;
  if (screen) return { layout: layout === 'grid' ? 'grid' : 'speaker', focus: screen.id };
  const speaker = tiles.find(({ connectionId }) => connectionId === state.speaker);
  return { layout, focus: (speaker ?? tiles[0])?.id };
}
