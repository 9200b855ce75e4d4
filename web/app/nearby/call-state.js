// The calls part of the state machine: the ringing call, the current call, and actions that wait for the camera. All
// functions are pure.
//
// Invariant: the camera and the microphone are open only while an action waits for them or uses them (`command`), or
// while there is a call other than an unanswered incoming one.
import { changeKeeping, keepingOf } from '../shared/keep.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Line} Line */
/** @typedef {import('./types.js').Media} Media */
/** @typedef {import('./types.js').Command} Command */
/** @typedef {import('./types.js').Person} Person */

/** How long the text about an ended call stays, unless another text replaces it (milliseconds). */
const overTime = 60_000;
/** How long a confirmation stays in the status line (milliseconds). */
export const passingTime = 5_000;

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/**
 * Returns the current call, or null. An incoming call that is not answered yet does not count. If there are two calls,
 * returns the newer one, because the older one is about to end.
 * @param {State} state
 * @returns {Line | null}
 */
export function currentCall({ calls }) {
  return calls.filter(({ state }) => state !== 'incoming').at(-1) ?? null;
}

/**
 * Returns the incoming call that rings on this device, or null.
 * @param {State} state
 * @returns {Line | null}
 */
export function incomingCall({ calls }) {
  return calls.find(({ state }) => state === 'incoming') ?? null;
}

/**
 * Returns the person in the current call, or the person being called before the call exists. Null if there is neither.
 * @param {State} state
 * @returns {Person | null}
 */
export function companion(state) {
  return currentCall(state)?.person ?? (state.command?.is === 'dial' ? state.command.person : null);
}

/** @type {import('./types.js').Handlers} */
export const callHandlers = {
  call: (state, { person, video }) => dial(state, person, video),
  accept: (state, { line, video }) => answer(state, line, video),
  decline: (state, { line }) => decline(state, line),
  cancel: (state) => hangUp(state),
  end: (state) => hangUp(state),
  mute: (state) => [{ ...state, muted: !state.muted }, [{ do: 'mute', on: !state.muted }]],
  camera: (state) => toggleCamera(state),
  switchCamera: (state) => [state, [{ do: 'switchCamera' }]],
  keep: (state, { callId }) => keep(state, callId),
  keepRefused: (state, { callId }) => [{ ...state, keeping: changeKeeping(state.keeping, callId, { mine: false }) }, []],
  callAgain: (state, { video }) => (state.over ? dial(state, state.over.person, video ?? state.over.video) : unchanged(state)),

  mediaOn: (state, { camera }) => mediaOn(state, camera),
  mediaFailed: (state, { why }) => mediaFailed(state, why),
  mediaLost: (state, { kind }) => mediaLost(state, kind),
  mediaBack: (state) => [state.trouble?.why === 'unheard' ? { ...state, trouble: null } : state, []],

  callNews: (state, { call }, now) => callNews(state, call, now),
  callOver: (state, event) => callOver(state, event),
  callRefused: (state, event) => callRefused(state, event),
  sound: (state, { line, silent }) => [{ ...state, calls: changed(state.calls, line, { silent }) }, []],
  ringSilent: (state, { silent }) => [{ ...state, ringSilent: silent }, []],
  overPassed: (state, { callId }) => [state.over?.callId === callId ? { ...state, over: null } : state, []],

  contactAsked: (state, { callId }) => (callId
    ? [{ ...state, keeping: changeKeeping(state.keeping, callId, { theirs: true }) }, []]
    : unchanged(state)),
};

/** @param {Line[]} calls @param {number} line @param {Partial<Line>} change */
const changed = (calls, line, change) => calls.map((one) => (one.line === line ? { ...one, ...change } : one));

/** @param {State} state @param {Person} person @param {boolean} video @returns {Step} */
function dial(state, person, video) {
  if (currentCall(state) || state.command || state.link.is === 'closed') return unchanged(state);
  return want({ ...state, over: null, trouble: null, passing: null }, { is: 'dial', person, video, sent: false });
}

/** @param {State} state @param {number} line @param {boolean} video @returns {Step} */
function answer(state, line, video) {
  if (incomingCall(state)?.line !== line || state.command?.is === 'answer') return unchanged(state);
  return want({ ...state, over: null, trouble: null }, { is: 'answer', line, video });
}

/**
 * Starts an action that the user requested: placing or answering a call. If the devices that it needs are not open,
 * opens them first; until then, the action waits in `command`.
 * @param {State} state
 * @param {Command} command
 * @returns {Step}
 */
function want(state, command) {
  const { media } = state;
  if (media.is === 'on') {
    if (media.camera || !command.video) return fulfil({ ...state, command });
    // The microphone is in use in a call: open only the camera.
    return [{ ...state, command, media: { is: 'asking' } }, [{ do: 'addCamera' }]];
  }
  // If the devices are being opened already, open them again only if this action differs in whether it needs the
  // camera: for example, the user answers without video instead of making a video call.
  const isAsked = media.is === 'asking' && (state.command?.video ?? command.video) === command.video;
  if (isAsked) return [{ ...state, command }, []];
  return [{ ...state, command, media: { is: 'asking' } }, [{ do: 'openMedia', camera: command.video }]];
}

/** @param {State} state @returns {Step} */
function fulfil(state) {
  const { command } = state;
  if (!command) return unchanged(state);
  // A call with video starts with the camera on, even if the user turned it off in the previous call.
  const fresh = { ...state, cameraOff: !command.video };
  if (command.is === 'answer') return [{ ...fresh, command: null }, [{ do: 'accept', line: command.line, video: command.video }]];
  if (command.sent) return unchanged(state);
  return [{ ...fresh, command: { ...command, sent: true } }, [{ do: 'call', person: command.person, video: command.video }]];
}

/** @param {State} state @param {boolean} camera @returns {Step} */
function mediaOn(state, camera) {
  // Without a camera, continue with audio only.
  const command = state.command && { ...state.command, video: state.command.video && camera };
  const asked = state.media.is === 'asking' && state.media.toggle;
  const on = { ...state, command, media: /** @type {Media} */ ({ is: 'on', camera }) };
  if (on.command) return fulfil(on);
  const call = currentCall(on);
  if (!call) return release(on);
  // The camera was requested for an answer that the user withdrew, so the current call continues unchanged.
  if (!asked) return unchanged(on);
  // The camera was requested during this call: show it now.
  return [{ ...on, cameraOff: !camera }, [{ do: 'setVideo', line: call.line, on: camera }]];
}

/** @param {State} state @param {import('./types.js').MediaTrouble} why @returns {Step} */
function mediaFailed(state, why) {
  const person = state.command?.is === 'dial' ? state.command.person : null;
  // The current call continues without the camera.
  if (currentCall(state)) {
    return [{ ...state, media: { is: 'on', camera: false }, command: null, trouble: { code: 'media', message: '', person, why } }, []];
  }
  const failed = { ...state, media: /** @type {Media} */ ({ is: 'failed', why }), command: null };
  // A ringing call continues to ring, and its dialog shows the problem. The user can still answer without video.
  const trouble = incomingCall(state) ? state.trouble : { code: 'media', message: '', person, why };
  return [{ ...failed, trouble }, [{ do: 'closeMedia' }]];
}

/**
 * Handles an unplugged device and shows a notice about it. A call continues with the other device; if the camera is
 * gone, the other person is notified that there is no video. Without a call, a lost camera closes both devices.
 * @param {State} state
 * @param {'audio' | 'video'} kind
 * @returns {Step}
 */
function mediaLost(state, kind) {
  const call = currentCall(state);
  /** @type {State['trouble']} */
  const unheard = { code: 'media', message: '', person: null, why: 'unheard' };
  if (kind === 'audio') return [{ ...state, trouble: unheard }, []];
  const [lost, effects] = mediaFailed({ ...state, cameraOff: true }, 'lost');
  // If the microphone is missing too, keep its notice: that is worse than a missing camera.
  const trouble = state.trouble?.why === 'unheard' ? state.trouble : lost.trouble;
  return [{ ...lost, trouble }, call ? [...effects, { do: 'setVideo', line: call.line, on: false }] : effects];
}

/** @param {State} state @returns {Step} */
function hangUp(state) {
  const call = currentCall(state);
  if (call) return [state, [{ do: 'hangUp', line: call.line }]];
  if (state.command?.is !== 'dial') return unchanged(state);
  // The camera prompt was still open, so no call was placed yet.
  return release({ ...state, command: null });
}

/**
 * Closes the camera and the microphone, unless an action or a call needs them.
 * @param {State} state
 * @returns {Step}
 */
function release(state) {
  if (state.command || currentCall(state) || state.media.is === 'off') return unchanged(state);
  // Clear the notice about an unplugged device.
  const trouble = state.trouble?.why === 'lost' || state.trouble?.why === 'unheard' ? null : state.trouble;
  return [{ ...state, trouble, media: { is: 'off' }, muted: false, cameraOff: false }, [{ do: 'closeMedia' }]];
}

/** @param {State} state @returns {Step} */
function toggleCamera(state) {
  const call = currentCall(state);
  if (!call || state.media.is !== 'on') return unchanged(state);
  const off = !state.cameraOff;
  if (!off && !state.media.camera) return [{ ...state, media: { is: 'asking', toggle: true } }, [{ do: 'addCamera' }]];
  return [{ ...state, cameraOff: off }, [{ do: 'setVideo', line: call.line, on: !off }]];
}

/**
 * Offers to keep in touch with the other person of a call.
 * @param {State} state
 * @param {string | undefined} callId by default, the id of the current call or, if there is none, of the last one
 * @returns {Step}
 */
function keep(state, callId = currentCall(state)?.id ?? state.over?.callId) {
  if (!callId || keepingOf(state.keeping, callId).mine) return unchanged(state);
  return [{ ...state, keeping: changeKeeping(state.keeping, callId, { mine: true }) }, [{ do: 'keep', callId }]];
}

/** @param {State} state @param {import('./types.js').Call} call @param {number} now @returns {Step} */
function callNews(state, call, now) {
  const known = state.calls.find(({ line }) => line === call.line);
  const activeAt = known?.activeAt ?? (call.state === 'active' ? now : null);
  const line = { ...call, activeAt, silent: known?.silent ?? false };
  const calls = known ? changed(state.calls, call.line, line) : [...state.calls, line];
  // The call that the user placed exists now, so it no longer waits in `command`.
  const command = state.command?.is === 'dial' && call.direction === 'outgoing' ? null : state.command;
  const news = { ...state, calls, command, over: call.state === 'incoming' ? state.over : null };
  const begins = call.state === 'active' && known?.activeAt == null;
  return [news, begins ? [{ do: 'focus', on: 'call' }] : []];
}

/** @param {State} state @param {Event} event @returns {Step} */
function callOver(state, { line, callId, outcome, person, direction, video, durationMs = null }) {
  const calls = state.calls.filter((one) => one.line !== line);
  const command = state.command?.is === 'answer' && state.command.line === line ? null : state.command;
  const known = state.calls.length !== calls.length || line === null;
  if (!known || outcome === 'merged') return release({ ...state, calls, command });
  // Do not show the end of a second call during a call; the call history shows it.
  const beside = currentCall({ ...state, calls }) !== null;
  const over = beside ? state.over : { callId, person, direction, outcome, video, durationMs };
  const missed = state.missed + (outcome === 'missed' && state.panel !== 'log' ? 1 : 0);
  const [released, effects] = release({ ...state, calls, command, over, missed, passing: null });
  const later = { do: 'later', after: overTime, event: { type: 'overPassed', callId } };
  return [released, [...effects, { do: 'askLog', before: null }, ...(beside ? [] : [later, { do: 'focus', on: 'home' }])]];
}

/** @param {State} state @param {Event} event reports that a call could not be placed @returns {Step} */
function callRefused(state, { line, code, message = '' }) {
  const person = companion(state);
  return release({ ...state, calls: state.calls.filter((one) => one.line !== line), command: null, trouble: { code, message, person } });
}

/** @param {State} state @param {number} line @returns {Step} */
function decline(state, line) {
  const isCommand = state.command?.is === 'answer' && state.command.line === line;
  const [released, effects] = release(isCommand ? { ...state, command: null } : state);
  return [released, [{ do: 'decline', line }, ...effects]];
}
