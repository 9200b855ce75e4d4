// The page as a pure state machine: it takes an event and the time, and returns the next state and the effects. `main.js`
// carries out the effects; `words.js` turns a state into text. This file handles joining and leaving; `room-state.js`
// handles everything inside the room.
// Invariant: `room` is set exactly while `place` is `in`.

import { handlers as knocks, withCard } from './knocks.js';
import { handlers as inRoom } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Place} Place */
/** @typedef {import('./types.js').Media} Media */
/** @typedef {import('./types.js').Link} Link */
/** @typedef {import('./types.js').Remembered} Remembered */

/** The server's limits (protocol §10, §15): of a name in characters, of a password and a message in bytes. */
export const limits = { name: 40, password: 128, message: 4096 };
/** How long a confirmation stays in the status line (milliseconds). */
const passingTime = 5_000;
/** Settings that take effect only on a new connection. All others need only a new publisher. */
const networkSettings = /** @type {const} */ (['candidates', 'protocol']);
/**
 * Errors that the user can fix, by correcting the form or waiting, before joining again. All others end the visit,
 * except the two that `joinRefused` handles first.
 */
const correctable = ['room_password', 'room_no_password', 'rate_limited', 'already_joined', 'invalid_name'];

/** The initial values of everything that belongs to one visit to the room. */
const nothing = {
  room: null, streams: [], speaker: null, pinned: null, fits: {}, page: 0, lines: [], unread: 0, knocks: [], reactions: [],
  reported: null, card: null, faults: [], faultsRead: false, panel: null, dialog: null, popup: null, question: null, sharing: /** @type {'off'} */ ('off'),
  recording: null, recordingAsked: false, broadcast: null,
};

/**
 * @param {{address: string, kept: Remembered, guest?: boolean, hasToken?: boolean, isNamed?: boolean, mesh?: boolean, isFramed?: boolean}} arrival
 * @returns {State}
 */
export function initialState({ address, kept, guest = false, hasToken = false, isNamed = false, mesh = false, isFramed = false }) {
  return {
    link: { is: 'connecting' }, guest, address, mesh, hasToken, isNamed, isFramed, kept, used: kept.settings, password: '',
    asksPassword: false, media: { is: 'off' }, muted: false, cameraOff: false, sound: 'unknown',
    place: address ? { is: 'before' } : { is: 'over', why: 'unreadable', message: '' }, trouble: null, passing: null,
    lineCount: 0, reactionCount: 0, knockedAt: -Infinity, ...nothing,
  };
}

/**
 * @param {State} state
 * @param {Event} event
 * @param {number} now milliseconds
 * @returns {Step}
 */
export function step(state, event, now) {
  const handle = handlers[event.type];
  if (!handle) throw new Error(`Unknown event "${event.type}".`);
  return withCard(state, handle(state, event, now));
}

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/** @type {import('./types.js').Handlers} */
const handlers = {
  ...inRoom,
  ...knocks,

  // User actions before and after the visit.
  name: (state, { name }) => keep(state, { name }),
  password: (state, { password }) => [{ ...state, password }, []],
  join: (state) => join(state),
  cancel: (state) => cancel(state),
  leave: (state) => over(state, 'left', '', [{ do: 'leave' }]),
  again: (state) => join({ ...state, place: { is: 'before' }, asksPassword: false }),
  back: (state) => [{ ...state, place: { is: 'before' }, trouble: null }, [{ do: 'focus', on: 'join' }]],
  settings: (state, { change }) => changeSettings(state, change),
  dismiss: (state) => [{ ...state, ...state.trouble ? { trouble: null } : { faultsRead: true }, passing: null }, []],

  // Camera and microphone.
  openMedia: (state, { camera = true }) => [{ ...state, media: { is: 'asking' } }, [{ do: 'openMedia', camera }]],
  mute: (state) => mute(state),
  cameraOff: (state) => cameraOff(state),
  mediaOn: (state, { camera }) => mediaOn(state, camera),
  mediaFailed: (state, { why }) => mediaFailed(state, why),
  cameraFailed: (state, { why }) => [{ ...state, trouble: { code: 'camera_failed', message: why } }, []],
  microphoneFailed: (state, { why }) => [{ ...state, trouble: { code: 'microphone_failed', message: why } }, []],
  mediaLost: (state, { kind }) => mediaLost(state, kind),
  mediaBack: (state, { kind = 'audio' }) => mediaBack(state, kind),
  sound: (state, { is }) => [{ ...state, sound: is }, []],
  mutedByHost: (state) => pass({ ...state, muted: true }, { is: 'mutedByHost' }, [{ do: 'mute', on: true }]),

  // The connection to the server.
  connected: (state, event) => connected(state, event),
  reconnecting: (state) => [{ ...state, link: { is: 'reconnecting' } }, []],
  restarted: (state) => restarted(state),
  closed: (state, event) => closed(state, event),
  retryLink: (state) => [{ ...state, link: { is: 'connecting' }, place: state.place.is === 'over' ? { is: 'before' } : state.place },
    [{ do: 'connect', settings: state.used }]],

  // Room answers.
  waiting: (state) => (state.place.is === 'joining' ? [{ ...state, place: { is: 'waiting' } }, [{ do: 'focus', on: 'waiting' }]] : unchanged(state)),
  joined: (state, event) => joined(state, event),
  roomIs: (state, event) => roomIs(state, event),
  waitingAgain: (state) => (state.room ? [{ ...state, ...nothing, panel: state.panel, lines: state.lines, place: { is: 'waiting' } }, []] : unchanged(state)),
  joinRefused: (state, event, now) => joinRefused(state, event, now),
  ended: (state, { reason }) => over(state, reason, ''),

  // Time. Ignore the timer of an earlier confirmation.
  passed: (state, { passing }) => (state.passing === passing ? [{ ...state, passing: null }, []] : unchanged(state)),
};

/** @param {State} state @param {Partial<Remembered>} change @returns {Step} */
function keep(state, change) {
  const kept = { ...state.kept, ...change };
  return [{ ...state, kept }, [{ do: 'remember', kept }]];
}

/** @param {State} state @param {import('./types.js').Passing} passing @param {Effect[]} [effects] @returns {Step} */
function pass(state, passing, effects = []) {
  return [{ ...state, passing }, [...effects, { do: 'later', after: passingTime, event: { type: 'passed', passing } }]];
}

// ---- Joining and leaving

/** @param {State} state @returns {Step} */
function join(state) {
  if (state.link.is === 'closed' || state.place.is !== 'before') return unchanged(state);
  const joining = { ...state, place: /** @type {Place} */ ({ is: 'joining', sent: false }), trouble: null, passing: null };
  const { settings } = state.kept;
  if (networkSettings.some((name) => settings[name] !== state.used[name])) {
    return [{ ...joining, used: settings, link: { is: 'connecting' } }, [{ do: 'connect', settings }, ...opening(joining)]];
  }
  const effects = opening(joining);
  const asked = effects.length ? { ...joining, used: settings, media: /** @type {Media} */ ({ is: 'asking' }) } : joining;
  const [begun, more] = begin(asked);
  return [begun, [...effects, ...more]];
}

/**
 * Returns the effects that open the camera and microphone on joining if the page has not tried to open them yet, or
 * reopen them if the settings have changed since.
 * @param {State} state
 * @returns {Effect[]}
 */
function opening({ media, kept: { settings }, used }) {
  const isOther = media.is === 'on' && Object.entries(settings).some(([name, value]) => used[/** @type {'size'} */ (name)] !== value);
  return media.is === 'off' || isOther ? [{ do: 'openMedia', camera: media.is === 'on' ? media.camera : true }] : [];
}

/**
 * Sends the join request once the connection is up and the browser no longer asks for the camera. Until then, changes
 * nothing.
 * @param {State} state
 * @returns {Step}
 */
function begin(state) {
  const isReady = state.link.is === 'online' && state.media.is !== 'asking';
  if (state.place.is !== 'joining' || state.place.sent || !isReady) return unchanged(state);
  const { address: name, kept, password, mesh } = state;
  const join = { name, displayName: kept.name.trim(), password: password || undefined, ...mesh ? { options: { media: 'mesh' } } : { routedOnly: true } };
  return [{ ...state, place: { is: 'joining', sent: true } }, [{ do: 'join', join }]];
}

/** @param {State} state @returns {Step} */
function cancel(state) {
  if (state.place.is !== 'joining' && state.place.is !== 'waiting') return unchanged(state);
  return [{ ...state, place: { is: 'before' } }, [{ do: 'leave' }, { do: 'focus', on: 'join' }]];
}

/** @param {State} state @param {Event} event @returns {Step} */
function joined(state, { room, chat }) {
  if (state.place.is !== 'joining' && state.place.is !== 'waiting') return unchanged(state);
  let { lineCount } = state;
  const isMesh = room.options.media === 'mesh';
  const lines = chat.map((/** @type {import('./types.js').Line} */ { displayName, ...line }) => (
    { ...line, id: lineCount += 1, name: displayName, mine: false }));
  const entered = {
    ...state, ...nothing, place: /** @type {Place} */ ({ is: 'in' }), room, lines, lineCount, password: '', asksPassword: false, panel: state.panel,
    mesh: isMesh, trouble: null,
  };
  return [entered, [...(state.media.is === 'on' ? [{ do: 'publish' }] : []), { do: 'focus', on: 'room' }]];
}

/**
 * Handles rejoining: after a longer outage the SDK has joined the room again with a new connection.
 * @param {State} state
 * @param {Event} event
 * @returns {Step}
 */
function roomIs(state, { room, knocks, streams }) {
  if (state.place.is !== 'in' && state.place.is !== 'waiting') return unchanged(state);
  return pass({ ...state, place: { is: 'in' }, room, knocks, streams }, { is: 'backAgain' });
}

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function joinRefused(state, { code, message, retryAfterMs }, now) {
  // The user canceled before the error arrived.
  if (state.place.is !== 'joining' && state.place.is !== 'waiting') return unchanged(state);
  // The SDK had to connect as a new client before the server answered, so the request is lost. Join again.
  if (code === 'connection_restarted') return begin({ ...state, place: { is: 'joining', sent: false } });
  // The link did not say that this is a mesh room. Show the note, which the user must read before pressing Join again.
  if (code === 'room_mesh') {
    return [{ ...state, place: { is: 'before' }, mesh: true, trouble: { code, message } }, [{ do: 'focus', on: 'join' }]];
  }
  if (!correctable.includes(code)) return over(state, code, message);
  const trouble = { code, message, ...(retryAfterMs ? { until: now + retryAfterMs, seconds: Math.ceil(retryAfterMs / 1000) } : {}) };
  const before = { ...state, place: /** @type {Place} */ ({ is: 'before' }), trouble };
  // The next press of Join joins without a password: by then, the user has seen the notice that the room has none.
  if (code === 'room_no_password') return [{ ...before, asksPassword: false, password: '' }, [{ do: 'focus', on: 'join' }]];
  if (code !== 'room_password') return [before, []];
  const isWrong = state.password !== '';
  return [
    { ...before, asksPassword: true, password: '', trouble: isWrong ? { ...trouble, code: 'wrong_password' } : null },
    [{ do: 'focus', on: 'password' }],
  ];
}

/**
 * Ends the visit. Keeps the camera open, so that the user can rejoin with one press.
 * @param {State} state
 * @param {string} why
 * @param {string} message
 * @param {Effect[]} [effects]
 * @returns {Step}
 */
function over(state, why, message, effects = []) {
  if (state.place.is === 'before' || state.place.is === 'over') return unchanged(state);
  const place = /** @type {Place} */ ({ is: 'over', why, message });
  // The user accepted that members see each other's IP addresses in the room that has ended, but not in the other room
  // that has its name now.
  const mesh = state.mesh && why !== 'room_other';
  return [{ ...state, ...nothing, mesh, place, trouble: null, passing: null }, [...effects, { do: 'closeScreen' }, { do: 'focus', on: 'over' }]];
}

// ---- Camera and microphone

/** @param {State} state @returns {Step} */
function mute(state) {
  if (state.media.is === 'asking') return unchanged(state);
  // The microphone is not open yet, so the button turns it on.
  if (state.media.is !== 'on') return [{ ...state, muted: false, media: { is: 'asking' } }, [{ do: 'openMedia', camera: false }]];
  const muted = !state.muted;
  const passing = state.passing?.is === 'mutedByHost' ? null : state.passing;
  return [{ ...state, muted, passing, sound: 'unknown' }, [{ do: 'mute', on: muted }]];
}

/** @param {State} state @returns {Step} */
function cameraOff(state) {
  if (state.media.is === 'asking') return unchanged(state);
  if (state.media.is !== 'on') return [{ ...state, cameraOff: false, media: { is: 'asking' } }, [{ do: 'openMedia', camera: true }]];
  if (!state.media.camera || state.media.lost === 'video') return [{ ...state, cameraOff: false }, [{ do: 'addCamera' }]];
  const off = !state.cameraOff;
  return [{ ...state, cameraOff: off }, [{ do: 'cameraOff', on: off }]];
}

/** @param {State} state @param {boolean} camera @returns {Step} */
function mediaOn(state, camera) {
  const isNew = state.media.is !== 'on';
  // The device that failed to start works now, so clear its problem.
  const isOver = state.trouble?.code === 'microphone_failed' || (camera && state.trouble?.code === 'camera_failed');
  const [begun, effects] = begin({
    ...state, media: { is: 'on', camera }, sound: 'unknown', used: { ...state.kept.settings, ...network(state) }, trouble: isOver ? null : state.trouble,
  });
  return [begun, [...(isNew && state.place.is === 'in' ? [{ do: 'publish' }] : []), ...effects]];
}

/**
 * Returns the network settings in use.
 * @param {State} state
 */
const network = ({ used: { candidates, protocol } }) => ({ candidates, protocol });

/**
 * Handles a camera and microphone that could not be opened. A user who pressed Join joins without them. In the room, a
 * notice says why and offers to try again.
 * @param {State} state
 * @param {import('./types.js').MediaTrouble} why
 * @returns {Step}
 */
function mediaFailed(state, why) {
  return begin({ ...state, media: { is: 'failed', why } });
}

/** @param {State} state @param {'audio' | 'video'} kind @returns {Step} */
function mediaLost(state, kind) {
  if (state.media.is !== 'on') return unchanged(state);
  return [{ ...state, media: { ...state.media, lost: kind, camera: kind === 'video' ? false : state.media.camera } }, []];
}

/**
 * Handles the change to another camera or microphone, which the user chose or the SDK selected.
 * @param {State} state
 * @param {'audio' | 'video'} kind
 * @returns {Step}
 */
function mediaBack(state, kind) {
  if (state.media.is !== 'on') return unchanged(state);
  const { lost, camera } = state.media;
  const failed = kind === 'video' ? 'camera_failed' : 'microphone_failed';
  return [{
    ...state, media: { is: 'on', camera: camera || kind === 'video', ...lost && lost !== kind ? { lost } : {} },
    sound: kind === 'audio' ? 'unknown' : state.sound, trouble: state.trouble?.code === failed ? null : state.trouble,
  }, []];
}

/** @param {State} state @param {Partial<import('./types.js').Settings>} change @returns {Step} */
function changeSettings(state, change) {
  const [changed, effects] = keep(state, { settings: { ...state.kept.settings, ...change } });
  // Before joining, reopen the camera so that the preview immediately shows what will be sent.
  const isCapture = 'size' in change || 'rate' in change;
  if (!isCapture || state.place.is !== 'before' || state.media.is !== 'on') return [changed, effects];
  return [{ ...changed, media: { is: 'asking' } }, [...effects, { do: 'openMedia', camera: state.media.camera }]];
}

// ---- The connection

/** @param {State} state @param {Event} event @returns {Step} */
function connected(state, { resumed, mesh }) {
  const known = { ...state, mesh: state.mesh || mesh === true };
  const dropped = state.link.is === 'reconnecting';
  // The SDK has connected again, but as a new client. The `restarted` event follows, and its handler continues.
  if (dropped && !resumed) return unchanged(known);
  const online = { ...known, link: /** @type {Link} */ ({ is: 'online' }) };
  return dropped && state.place.is === 'in' ? pass(online, { is: 'backAgain' }) : begin(online);
}

/**
 * Handles a connection as a new client, because the server restarted or has forgotten this client after a long outage.
 * If the user was in the room, the SDK joins it again.
 * @param {State} state
 * @returns {Step}
 */
function restarted(state) {
  return begin({ ...state, link: { is: 'online' } });
}

/** @param {State} state @param {Event} event @returns {Step} */
function closed(state, { code, message = '' }) {
  const link = /** @type {Link} */ ({ is: 'closed', code, message });
  const isInside = state.place.is === 'in' || state.place.is === 'waiting';
  const outside = state.place.is === 'over' ? state.place : { is: 'before' };
  const place = /** @type {Place} */ (isInside ? { is: 'over', why: 'connectionLost', message } : outside);
  return [{ ...state, ...nothing, link, place, trouble: null, passing: null }, isInside ? [{ do: 'closeScreen' }] : []];
}
