// The part of the state machine in `state.js` for a user in the room: people, streams, chat, knocks, reactions, and the view. Room
// events are ignored while the user is not in the room.

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Room} Room */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Person} Person */
/** @typedef {import('./types.js').Handlers} Handlers */

/** Maximum number of lines in the chat log, so that it cannot grow without bound. */
const keptLines = 300;
/** How long a confirmation stays in the status line (milliseconds). */
const passingTime = 5_000;
/** How long a reaction stays on its tile (milliseconds), and how many reactions are kept for one tile and in total. */
const reactionTime = 4_000;
const reactionsPerTile = 3;
const keptReactions = 60;
/** Minimum time between two reactions that screen readers announce (milliseconds). */
const reactionRest = 3_000;

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/**
 * Returns a handler that calls the given one while the user is in the room, and otherwise changes nothing.
 * @param {(state: State & {room: Room}, event: Event, now: number) => Step} handle
 * @returns {(state: State, event: Event, now: number) => Step}
 */
export const inside = (handle) => (state, event, now) => (state.room ? handle(/** @type {State & {room: Room}} */ (state), event, now) : unchanged(state));

/** @param {{room: Room | null}} state */
export const isHost = ({ room }) => room?.role === 'host' || room?.role === 'cohost';
/** @param {{room: Room | null}} state */
export const mayShare = ({ room }) => room !== null && (room.options.share === 'all' || room.role !== 'guest');
/** @param {{room: Room | null}} state */
export const mayRecord = ({ room }) => room !== null && room.role === 'host' && room.hostsMayRecord;
/** @param {Room} room @param {string} connectionId */
export const personOf = (room, connectionId) => room.people.find((person) => person.connectionId === connectionId);
/** @param {{room: Room | null}} state */
export const handIsRaised = ({ room }) => room !== null && personOf(room, room.me)?.handAt !== undefined;

/** @type {Handlers} */
export const handlers = {
  // Events of the room.
  changed: inside((state, { options }) => changed(state, options)),
  person: inside((state, { person, me }) => personNews(state, person, me)),
  // After rejoining, all media is published and subscribed again, so clear the earlier faults.
  roomAway: inside((state) => [{ ...state, room: { ...state.room, away: true }, faults: [], faultsRead: false, recording: null, recordingAsked: false, broadcast: null }, []]),
  role: inside((state, { role }) => roleChanged(state, role)),
  said: inside((state, { line }) => said(state, line)),
  fileRemoved: inside((state, { fileId }) => [{ ...state, lines: state.lines.filter(({ file }) => file?.fileId !== fileId) }, []]),
  reacted: inside(reacted),
  recording: inside((state, { isRecorded, asks }) => {
    const next = { ...state, recording: isRecorded ? { asks } : null, recordingAsked: false };
    // Without a press too: a full disk, for example, ends a recording.
    return state.recording && !isRecorded ? pass(next, { is: 'recordingOver' }) : [next, []];
  }),
  broadcast: inside((state, { isBroadcast, asks }) => {
    const next = { ...state, broadcast: isBroadcast ? { asks } : null };
    return state.broadcast && !isBroadcast ? pass(next, { is: 'broadcastOver' }) : [next, []];
  }),
  broadcastConsent: inside((state, { accept }) => [{ ...state, broadcast: state.broadcast && { asks: false } }, [{ do: 'broadcastConsent', accept }]]),
  consent: inside((state, { accept }) => [{ ...state, recording: state.recording && { asks: false } }, [{ do: 'consent', accept }]]),
  stream: inside((state, { stream }) => [{ ...state, streams: upsert(state.streams, stream) }, []]),
  streamGone: inside((state, { streamId }) => streamGone(state, streamId)),
  fault: inside((state, { of, connectionId, isScreen, code, isFinal }) => (
    [{ ...state, faults: [...withoutFault(state, of), { of, connectionId, isScreen, code, isFinal }], faultsRead: false }, []])),
  faultOver: inside((state, { of }) => [{ ...state, faults: withoutFault(state, of) }, []]),
  speaker: inside((state, { connectionId }) => [{ ...state, speaker: connectionId }, []]),

  // User actions.
  say: inside((state, { text }) => (text.trim() && state.room.options.chat ? [state, [{ do: 'say', text: text.trim() }]] : unchanged(state))),
  unsaid: inside((state, { text, code, message }) => [{ ...state, trouble: { code, message } }, [{ do: 'restoreDraft', text }]]),
  hand: inside((state) => [state, [{ do: 'raiseHand', raised: !handIsRaised(state) }]]),
  react: inside((state, { reaction }) => [{ ...state, popup: null }, [{ do: 'react', reaction }]]),
  share: inside((state) => share(state)),
  screenOn: inside((state) => [{ ...state, sharing: 'on' }, []]),
  screenOff: (state, { why = null }) => screenOff(state, why),
  refused: inside((state, { code, message }) => [{ ...state, trouble: { code, message } }, []]),

  // Host actions.
  record: inside((state) => record(state)),
  recordRefused: inside((state, { code, message }) => [{ ...state, recordingAsked: false, trouble: { code: recordTrouble(code), message } }, []]),
  muteOther: inside((state, { connectionId }) => [state, [{ do: 'muteOther', connectionId }]]),
  stopShareOf: inside((state, { connectionId }) => [state, [{ do: 'stopShareOf', connectionId }]]),
  setRole: inside((state, { connectionId, role }) => [state, [{ do: 'setRole', connectionId, role }]]),
  ask: inside((state, { question }) => [{ ...state, question }, []]),
  unask: (state) => [{ ...state, question: null }, []],
  answer: inside((state, event) => answer(state, event)),
  options: inside((state, { change }) => (isHost(state) ? [state, [{ do: 'set', change }]] : unchanged(state))),

  // The view.
  panel: inside((state, { is }) => turnPanel(state, is)),
  dialog: (state, { is }) => [{ ...state, dialog: is, popup: null }, []],
  popup: inside((state, { is }) => [{ ...state, popup: state.popup === is ? null : is }, []]),
  layout: (state, { is }) => remembering({ ...state, popup: null, pinned: null, page: 0 }, { layout: is }),
  nextLayout: (state) => {
    const all = /** @type {const} */ (['auto', 'grid', 'speaker']);
    return remembering({ ...state, pinned: null, page: 0 }, { layout: all[(all.indexOf(state.kept.layout) + 1) % all.length] });
  },
  pin: inside((state, { id }) => [{ ...state, pinned: state.pinned === id ? null : id, page: 0 }, []]),
  fit: inside((state, { id, is }) => [{ ...state, fits: { ...state.fits, [id]: is } }, []]),
  page: inside((state, { to }) => [{ ...state, page: Math.max(0, to) }, []]),
  corner: (state, { corner }) => remembering(state, { corner }),
  keys: (state, { on }) => remembering(state, { keys: on }),
  copied: (state) => pass(state, { is: 'copied' }),
  reactionOver: (state, { id }) => [{ ...state, reactions: state.reactions.filter((one) => one.id !== id) }, []],
};

/** @param {State} state @param {Partial<import('./types.js').Remembered>} change @returns {Step} */
function remembering(state, change) {
  const kept = { ...state.kept, ...change };
  return [{ ...state, kept }, [{ do: 'remember', kept }]];
}

/** @param {State} state @param {import('./types.js').Passing} passing @param {Effect[]} [effects] @returns {Step} */
function pass(state, passing, effects = []) {
  return [{ ...state, passing }, [...effects, { do: 'later', after: passingTime, event: { type: 'passed', passing } }]];
}

// ---- People and streams

/** @param {State & {room: Room}} state @param {import('./types.js').Options} options @returns {Step} */
function changed(state, options) {
  const { room } = state;
  // The status line shows one sentence at a time, so show the most important change.
  const news = /** @type {const} */ (['locked', 'lobby', 'chat']).find((name) => room.options[name] !== options[name]);
  const next = { ...state, room: { ...room, options } };
  return news ? pass(next, { is: `${news}${options[news] ? 'On' : 'Off'}` }) : [next, []];
}

/**
 * @param {State & {room: Room}} state
 * @param {Person} person
 * @param {string} me the local connectionId, which changes when the room is joined again
 * @returns {Step}
 */
function personNews(state, person, me) {
  const { room } = state;
  const { connectionId, displayName: name } = person;
  const old = personOf(room, connectionId);
  const isMe = connectionId === me;
  const wasMe = connectionId === room.me && !isMe;
  if (person.state === 'left') {
    if (isMe || !old) return unchanged(state);
    const [next, effects] = left(state, old);
    return wasMe ? [{ ...next, passing: state.passing }, []] : [next, effects];
  }
  const people = old ? room.people.map((one) => (one === old ? person : one)) : [...room.people, person];
  const next = { ...state, room: { ...room, people, me } };
  if (isMe) return [next, []];
  if (!old) return pass(next, { is: 'came', name });
  if (old.handAt === undefined && person.handAt !== undefined) return pass(next, { is: 'hand', name });
  if (old.state !== person.state) return pass(next, { is: person.state === 'reconnecting' ? 'away' : 'backOther', name });
  return [next, []];
}

/** @param {State & {room: Room}} state @param {Person} old @returns {Step} */
function left(state, { connectionId, displayName: name }) {
  const { room, streams, speaker, pinned, question } = state;
  const gone = [connectionId, ...streams.filter((one) => one.connectionId === connectionId).map(({ streamId }) => streamId)];
  const next = {
    ...state, room: { ...room, people: room.people.filter((one) => one.connectionId !== connectionId) },
    streams: streams.filter((one) => one.connectionId !== connectionId), speaker: speaker === connectionId ? null : speaker,
    pinned: pinned !== null && gone.includes(pinned) ? null : pinned,
    question: question?.connectionId === connectionId ? null : question,
    fits: Object.fromEntries(Object.entries(state.fits).filter(([id]) => !gone.includes(id))),
  };
  return pass(next, { is: 'went', name });
}

/** @param {State & {room: Room}} state @param {import('./types.js').Role} role @returns {Step} */
function roleChanged(state, role) {
  const { room } = state;
  if (room.role === role) return unchanged(state);
  const people = room.people.map((one) => (one.connectionId === room.me ? { ...one, role } : one));
  const next = { ...state, room: { ...room, role, people } };
  if (role === 'guest') return pass({ ...next, knocks: [], question: null, dialog: state.dialog === 'options' ? null : state.dialog }, { is: 'guestNow' });
  return pass(next, { is: role === 'host' ? 'hostNow' : 'cohostNow' });
}

/** @param {import('./types.js').Stream[]} streams @param {import('./types.js').Stream} stream */
function upsert(streams, stream) {
  const index = streams.findIndex(({ streamId }) => streamId === stream.streamId);
  return index < 0 ? [...streams, stream] : streams.map((one, at) => (at === index ? stream : one));
}

/** @param {State} state @param {string} streamId @returns {Step} */
function streamGone(state, streamId) {
  const pinned = state.pinned === streamId ? null : state.pinned;
  return [{ ...state, pinned, streams: state.streams.filter((one) => one.streamId !== streamId) }, []];
}

/** @param {State} state @param {string} of */
const withoutFault = ({ faults }, of) => faults.filter((fault) => fault.of !== of);

// ---- Chat and reactions

/** @param {State & {room: Room}} state @param {import('./types.js').Line} line @returns {Step} */
function said(state, { connectionId, displayName: name, text, at, file }) {
  const mine = connectionId === state.room.me;
  const id = state.lineCount + 1;
  const lines = [...state.lines, { id, connectionId, name, text, at, mine, ...(file ? { file } : {}) }].slice(-keptLines);
  const next = { ...state, lines, lineCount: id };
  // While the chat is open, its log announces the line to screen readers, so the status line need not.
  if (mine || state.panel === 'chat') return [next, []];
  return pass({ ...next, unread: state.unread + 1 }, { is: 'wrote', name });
}

/** @param {State & {room: Room}} state @param {Event} event @param {number} now @returns {Step} */
function reacted(state, { connectionId, reaction }, now) {
  const id = state.reactionCount + 1;
  const same = state.reactions.filter((one) => one.connectionId === connectionId);
  const dropped = same.length >= reactionsPerTile ? same[0] : null;
  const reactions = [...state.reactions.filter((one) => one !== dropped), { id, connectionId, reaction }].slice(-keptReactions);
  const name = personOf(state.room, connectionId)?.displayName ?? '';
  const isReported = connectionId !== state.room.me && (!state.reported || now - state.reported.at >= reactionRest);
  const reported = isReported ? { name, reaction, at: now } : state.reported;
  return [{ ...state, reactions, reactionCount: id, reported }, [{ do: 'later', after: reactionTime, event: { type: 'reactionOver', id } }]];
}

// ---- User actions

/** @param {State} state @returns {Step} */
function share(state) {
  if (state.sharing === 'asking') return unchanged(state);
  if (state.sharing === 'on') return [{ ...state, sharing: 'off' }, [{ do: 'closeScreen' }]];
  if (!mayShare(state)) return [{ ...state, trouble: { code: 'share_hosts', message: '' } }, []];
  return [{ ...state, sharing: 'asking' }, [{ do: 'openScreen' }]];
}

/** @param {State & {room: Room}} state @returns {Step} */
function record(state) {
  if (!mayRecord(state) || state.recordingAsked) return unchanged(state);
  return [{ ...state, popup: null, recordingAsked: true }, [{ do: 'record', on: state.recording === null }]];
}

/** @param {string} code @returns {string} the key of the text about a recording that could not be started or stopped */
const recordTrouble = (code) => (['archive_conflict', 'media_unavailable', 'recording_unavailable', 'storage_full', 'not_permitted'].includes(code) ? `record_${code}` : code);

/** @param {State} state @param {string | null} why `stoppedByHost` or a problem; null if the user ended or canceled the share @returns {Step} */
function screenOff(state, why) {
  if (state.sharing === 'off') return unchanged(state);
  const off = { ...state, sharing: /** @type {'off'} */ ('off') };
  if (why === 'stoppedByHost') return pass(off, { is: 'shareStopped' });
  return [why ? { ...off, trouble: { code: why, message: '' } } : off, []];
}

/** @param {State} state @param {Event} event @returns {Step} */
function answer(state, { ban = false }) {
  const { question } = state;
  if (!question) return unchanged(state);
  const { connectionId } = question;
  const effect = question.is === 'remove' ? { do: 'remove', connectionId, ban } : { do: 'setRole', connectionId, role: 'host' };
  return [{ ...state, question: null }, [effect]];
}

/** @param {State} state @param {import('./types.js').Panel | null} is @returns {Step} */
function turnPanel(state, is) {
  const panel = state.panel === is ? null : is;
  const left = state.panel;
  const focus = panel === 'chat' ? 'message' : panel ? 'panel' : left;
  return [{ ...state, panel, popup: null, unread: panel === 'chat' ? 0 : state.unread }, focus ? [{ do: 'focus', on: focus }] : []];
}
