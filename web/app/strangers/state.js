// The page as a pure state machine: it takes an event and the time, and returns the next state and the effects. `main.js`
// carries out the effects; `status.js` turns a state into text.
// Invariant: a match is on the screen only between its `matched` event and the first event that ends it. A late event of an
// earlier match finds a different `chat` and changes nothing.

import { changeKeeping, keepingOf } from '../shared/keep.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Form} Form */
/** @typedef {import('./types.js').Link} Link */
/** @typedef {import('./types.js').Media} Media */
/** @typedef {import('./types.js').MediaTrouble} MediaTrouble */
/** @typedef {import('./types.js').Mode} Mode */
/** @typedef {import('./types.js').Chat} Chat */
/** @typedef {import('./types.js').Waiting} Waiting */
/** @typedef {import('./types.js').Matched} Matched */
/** @typedef {import('./types.js').Ending} Ending */
/** @typedef {import('./types.js').PastMatch} PastMatch */
/** @typedef {import('./types.js').Pause} Pause */ /** @typedef {import('./types.js').Line} Line */

/** The server's limits (protocol §5): the number of interests, and the length of each text. */
export const limits = { interests: 10, interest: 50, name: 40, message: 2000 };
/** Maximum number of lines in the chat log, so that it cannot grow without bound. */
const keptLines = 300;
/**
 * Endings after which the search continues automatically.
 * @type {string[]}
 */
const searchedOn = ['next', 'blocked', 'partnerNext', 'partnerLeft', 'connectionLost'];
/** How long the server accepts reports about a match that is over (protocol §5; milliseconds). */
const reportable = 60_000;
/**
 * Maximum absence after which the search resumes automatically (milliseconds). After a longer one it does not, because
 * nobody should return to find a stranger looking at them.
 */
const longAway = 120_000;
/** How long a confirmation stays in the status line (milliseconds). */
const passingTime = 5_000;

/**
 * @param {{form: Form, guest: boolean}} remembered
 * @returns {State}
 */
export function initialState({ form, guest }) {
  return {
    link: { is: 'connecting' }, hidesAddress: null, samplesEvery: null, warning: null, media: { is: 'off' }, muted: false, cameraOff: false, form,
    chat: { is: 'idle' }, last: null, lines: [], linesOf: null, lineCount: 0, keeping: [], question: null, reporting: null, trouble: null,
    passing: null, people: null, guest,
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
  return handle(state, event, now);
}

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/** @type {Record<string, (state: State, event: Event, now: number) => Step>} */
const handlers = {
  // User actions on the first screen.
  form: (state, { change }) => changeForm(state, change),
  start: (state) => start(state),
  openMedia: (state, { camera = true }) => [{ ...state, media: { is: 'asking' } }, [{ do: 'openMedia', camera }]],
  useText: (state) => useText(state),

  // User actions in a chat.
  next: (state, _, now) => next(state, now),
  stop: (state, _, now) => stop(state, now),
  mute: (state) => [{ ...state, muted: !state.muted }, [{ do: 'mute', on: !state.muted }]],
  cameraOff: (state) => [{ ...state, cameraOff: !state.cameraOff }, [{ do: 'cameraOff', on: !state.cameraOff }]],
  say: (state, { text }) => say(state, text),
  ask: (state, { about }) => ask(state, about),
  unask: (state) => [{ ...state, question: null, reporting: null }, []],
  block: (state, _, now) => block(state, now),
  report: (state, { reason, alsoBlock }) => report(state, reason, alsoBlock),
  keep: (state) => keep(state),
  // A warning hides the other notices, so it is dismissed alone.
  dismiss: (state) => [state.warning ? { ...state, warning: null } : { ...state, trouble: null, passing: null, last: null }, []],

  // Camera and microphone.
  mediaOn: (state, { camera }) => mediaOn(state, camera),
  mediaFailed: (state, { why }) => mediaFailed(state, why),
  mediaLost: (state) => [{ ...state, media: { is: 'failed', why: 'lost' } }, [{ do: 'closeMedia' }]],

  // The connection to the server.
  connected: (state, event, now) => connected(state, event, now),
  reconnecting: (state, _, now) => [{ ...state, link: { is: 'reconnecting', since: now } }, []],
  restarted: (state, event, now) => restarted(state, event, now),
  closed: (state, event) => closed(state, event),
  retryLink: (state) => [{ ...state, link: { is: 'connecting' } }, [{ do: 'connect' }]],
  people: (state, { online, waiting }) => [{ ...state, people: { online, waiting } }, []],

  // Events of the roulette.
  waiting: (state, event, now) => waiting(state, event, now),
  matched: (state, event) => matched(state, event),
  partner: (state, event) => inMatch(state, event, { away: event.state === 'reconnecting' }),
  stream: (state, event) => inMatch(state, event, { stream: event.is }),
  sound: (state, event) => inMatch(state, event, { silent: event.silent }),
  typing: (state, event) => inMatch(state, event, { typing: event.typing }),
  blur: (state, event) => blur(state, event),
  warning: (state, { source, ends, text = '' }) => [{ ...state, warning: { source, ends, text } }, []],
  ended: (state, event, now) => ended(state, event, now),
  heard: (state, event) => heard(state, event),
  keepAsked: (state, { matchId }) => [{ ...state, keeping: changeKeeping(state.keeping, matchId, { theirs: true }) }, []],
  kept: (state, { matchId }) => [{ ...state, keeping: changeKeeping(state.keeping, matchId, { agreed: true }) }, []],

  // Results of requests.
  unsent: (state, { text }) => [{ ...state, lines: settle(state.lines, text, 'failed') }, []],
  reported: (state, event, now) => reported(state, event, now),
  refused: (state, event, now) => refused(state, event, now),

  // Time.
  passed: (state, { passing }) => [state.passing === passing ? { ...state, passing: null } : state, []],
  forget: (state, { matchId }) => [state.last?.matchId === matchId ? { ...state, last: null } : state, []],
};

/** @param {State} state @param {Partial<Form>} change @returns {Step} */
function changeForm(state, change) {
  // The form is hidden during a search or a chat, and must not change then.
  if (state.chat.is === 'waiting' || state.chat.is === 'matched') return unchanged(state);
  const form = { ...state.form, ...change };
  if (change.agreed && state.samplesEvery !== null) form.agreedToSamples = true;
  const remember = { do: 'remember', form };
  if (form.mode === 'video' || state.form.mode === 'text') return [{ ...state, form }, [remember]];
  // The user chose “Text only”: turn the camera off now, and cancel a start that waits for the camera.
  return [{ ...state, form, media: { is: 'off' }, chat: { is: 'idle' } }, [remember, { do: 'closeMedia' }]];
}

/** @param {State} state @returns {Step} */
function start(state) {
  if (!state.form.agreed || state.link.is === 'closed' || state.chat.is !== 'idle') return unchanged(state);
  // The user has read why the last chat ended. Other warnings stay until they are dismissed.
  const warning = state.warning?.ends ? null : state.warning;
  const preparing = { ...state, chat: /** @type {Chat} */ ({ is: 'preparing' }), warning, trouble: null, passing: null, last: null };
  if (state.form.mode === 'video' && state.media.is !== 'on' && state.media.is !== 'asking') {
    return [{ ...preparing, media: { is: 'asking' } }, [{ do: 'openMedia', camera: true }]];
  }
  return begin(preparing);
}

/**
 * Starts the search once the connection is up and, for video, the camera is on. Until then, changes nothing.
 * @param {State} state
 * @returns {Step}
 */
function begin(state) {
  const ready = state.link.is === 'online' && (state.form.mode === 'text' || state.media.is === 'on');
  if (state.chat.is !== 'preparing' || !ready) return unchanged(state);
  const chat = /** @type {Chat} */ ({ is: 'waiting', pause: null, after: null, name: '' });
  return [{ ...state, chat, lines: [], linesOf: null }, [{ do: 'start', form: state.form }, { do: 'focus', on: 'chat' }]];
}

/** @param {State} state @returns {Step} */
function useText(state) {
  const text = { ...state, form: { ...state.form, mode: /** @type {Mode} */ ('text') }, media: /** @type {Media} */ ({ is: 'off' }) };
  /** @type {Effect[]} */
  const effects = [{ do: 'closeMedia' }, { do: 'remember', form: text.form }];
  if (state.chat.is === 'idle' || state.chat.is === 'preparing') {
    const [begun, more] = begin(text);
    return [begun, [...effects, ...more]];
  }
  // During a search or a chat, the server uses the new mode only from the next search on, so start a new search.
  const chat = /** @type {Chat} */ ({ is: 'waiting', pause: null, after: 'next', name: '' });
  return [{ ...text, chat }, [...effects, { do: 'stop' }, { do: 'start', form: text.form }]];
}

/**
 * Returns the new `last`, which is the match that the user leaves, and the effects of leaving it. Without a current
 * match, `last` does not change and there are no effects.
 * @param {State} state
 * @param {number} now
 * @returns {{last: PastMatch | null, effects: Effect[]}}
 */
function leave(state, now) {
  if (state.chat.is !== 'matched') return { last: state.last, effects: [] };
  const { matchId, name } = state.chat;
  return {
    last: { matchId, name, endedAt: now },
    effects: [{ do: 'clearDraft' }, { do: 'later', after: reportable, event: { type: 'forget', matchId } }],
  };
}

/** @param {State} state @param {Ending} after @param {number} now @returns {Step} */
function searchOn(state, after, now) {
  if (state.chat.is !== 'matched') return unchanged(state);
  const { last, effects } = leave(state, now);
  const lines = after === 'next' || !state.lines.length ? state.lines : addNote(state.lines, state.lineCount + 1, after);
  const chat = /** @type {Chat} */ ({ is: 'waiting', pause: null, after, name: state.chat.name });
  return [{ ...state, chat, last, lines, lineCount: state.lineCount + 1 }, effects];
}

/** @param {State} state @param {number} now @returns {Step} */
function next(state, now) {
  if (state.chat.is !== 'matched') return unchanged(state);
  const [searching, effects] = searchOn(state, 'next', now);
  return [{ ...searching, question: state.question?.is === 'report' ? state.question : null }, [{ do: 'next' }, ...effects]];
}

/** @param {State} state @param {number} now @returns {Step} */
function stop(state, now) {
  if (state.chat.is === 'idle') return unchanged(state);
  const { last, effects } = leave(state, now);
  const stopped = { ...state, chat: /** @type {Chat} */ ({ is: 'idle' }), last, question: null, passing: null, trouble: null };
  const stops = /** @type {Effect[]} */ (state.chat.is === 'preparing' ? [] : [{ do: 'stop' }]);
  return [stopped, [...stops, ...effects, { do: 'focus', on: 'start' }]];
}

/** @param {State} state @param {string} text @returns {Step} */
function say(state, text) {
  if (state.chat.is !== 'matched' || !state.chat.textChat || !text.trim()) return unchanged(state);
  const lineCount = state.lineCount + 1;
  return [{ ...state, lineCount, lines: addLine(state.lines, lineCount, 'me', text, 'pending') }, [{ do: 'say', text }]];
}

/** @param {State} state @param {'block' | 'report'} about @returns {Step} */
function ask(state, about) {
  const whom = state.chat.is === 'matched' ? state.chat : state.last;
  if (!whom) return unchanged(state);
  // Keep the match id in the question: the person whom it is about must not change while the user reads it.
  return [{ ...state, question: { is: about, matchId: whom.matchId, name: whom.name }, reporting: null }, []];
}

/** @param {State} state @param {number} now @returns {Step} */
function block(state, now) {
  if (!state.question) return unchanged(state);
  const { matchId } = state.question;
  const asked = { ...state, question: null };
  const present = state.chat.is === 'matched' && state.chat.matchId === matchId;
  const [searching, effects] = present ? searchOn(asked, 'blocked', now) : unchanged(asked);
  return [searching, [{ do: 'block', matchId }, ...effects]];
}

/** @param {State} state @returns {Step} */
function keep(state) {
  const matchId = (state.chat.is === 'matched' ? state.chat : state.last)?.matchId;
  if (!matchId || keepingOf(state.keeping, matchId).mine) return unchanged(state);
  return [{ ...state, keeping: changeKeeping(state.keeping, matchId, { mine: true }) }, [{ do: 'keep', matchId }]];
}

/** @param {State} state @param {string} reason @param {boolean} alsoBlock @returns {Step} */
function report(state, reason, alsoBlock) {
  if (state.question?.is !== 'report') return unchanged(state);
  return [{ ...state, reporting: 'sending' }, [{ do: 'report', matchId: state.question.matchId, reason, alsoBlock }]];
}

/**
 * Handles a report that was sent. If the user also chose to block the person, does so only now, because blocking ends
 * the match.
 * @param {State} state
 * @param {Event} event
 * @param {number} now
 * @returns {Step}
 */
function reported(state, { matchId, alsoBlock }, now) {
  const thanked = { ...state, reporting: null, passing: /** @type {const} */ ('reported') };
  if (state.question?.matchId !== matchId) return [{ ...thanked }, [passes('reported'), ...(alsoBlock ? [{ do: 'block', matchId }] : [])]];
  const [done, effects] = alsoBlock ? block(thanked, now) : unchanged({ ...thanked, question: null });
  return [done, [passes('reported'), ...effects]];
}

/** @param {State} state @param {boolean} camera @returns {Step} */
function mediaOn(state, camera) {
  // The user chose “Text only” while the browser was still asking for the camera.
  if (state.form.mode === 'text') return [{ ...state, media: { is: 'off' } }, [{ do: 'closeMedia' }]];
  const [begun, effects] = begin({ ...state, media: { is: 'on', camera } });
  return [begun, [{ do: 'useMedia' }, ...effects]];
}

/** @param {State} state @param {MediaTrouble} why @returns {Step} */
function mediaFailed(state, why) {
  if (state.form.mode === 'text') return unchanged(state);
  const chat = state.chat.is === 'preparing' ? /** @type {Chat} */ ({ is: 'idle' }) : state.chat;
  return [{ ...state, chat, media: { is: 'failed', why } }, [{ do: 'closeMedia' }]];
}

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function connected(state, { resumed, hidesAddress, samplesEvery = null }, now) {
  const known = { ...state, hidesAddress: hidesAddress ?? state.hidesAddress, samplesEvery };
  // The rules that the user agreed to did not mention samples.
  if (samplesEvery !== null && state.form.agreed && !state.form.agreedToSamples) return rulesChanged(known, now);
  const dropped = state.link.is === 'reconnecting';
  // The SDK has connected again, but as a new client. The `restarted` event follows, and its handler continues.
  if (dropped && !resumed) return unchanged(known);
  const online = { ...known, link: /** @type {Link} */ ({ is: 'online' }) };
  if (dropped) return [{ ...online, passing: 'back' }, [passes('back')]];
  const [begun, effects] = begin(online);
  return [begun, [{ do: 'count' }, ...effects]];
}

/**
 * Asks the user to agree again, and ends a search or a chat until they have.
 * @param {State} state
 * @param {number} now
 * @returns {Step}
 */
function rulesChanged(state, now) {
  const form = { ...state.form, agreed: false };
  const [stopped, effects] = stop(state, now);
  const wasBusy = state.chat.is === 'waiting' || state.chat.is === 'matched';
  const trouble = wasBusy ? { code: 'rules_changed', message: '', pause: null } : state.trouble;
  return [{ ...stopped, form, trouble, link: /** @type {Link} */ ({ is: 'online' }) }, [{ do: 'count' }, ...effects]];
}

/**
 * Handles a connection as a new client, because the server restarted or has forgotten this client after a long outage.
 * The SDK searches again automatically; after a long absence, stops that search.
 * @param {State} state
 * @param {Event} _
 * @param {number} now
 * @returns {Step}
 */
function restarted(state, _, now) {
  const online = { ...state, link: /** @type {Link} */ ({ is: 'online' }) };
  if (state.chat.is !== 'waiting' && state.chat.is !== 'matched') return begin(online);
  const { last, effects } = leave(online, now);
  if (state.link.is === 'reconnecting' && now - state.link.since > longAway) {
    const idle = { ...online, chat: /** @type {Chat} */ ({ is: 'idle' }), last, question: null, passing: /** @type {const} */ ('away') };
    return [idle, [{ do: 'stop' }, ...effects]];
  }
  // A person who was only waiting lost no chat. The server may just have sent this client to another node.
  const after = state.chat.is === 'waiting' ? state.chat.after : 'connectionLost';
  const chat = /** @type {Chat} */ ({ is: 'waiting', pause: null, after, name: '' });
  return [{ ...online, chat, last }, effects];
}

/** @param {State} state @param {Event} event @returns {Step} */
function closed(state, { code, message = '' }) {
  const link = /** @type {Link} */ ({ is: 'closed', code, message });
  const ended = { ...state, link, chat: /** @type {Chat} */ ({ is: 'idle' }), question: null, passing: null, people: null };
  // If the server could not be reached, keep the preview open: the user can try again.
  if (code === 'connect_failed') return unchanged(ended);
  return [{ ...ended, media: { is: 'off' } }, [{ do: 'closeMedia' }]];
}

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function waiting(state, { retryAfterMs }, now) {
  const pause = pauseOf(retryAfterMs, now);
  if (state.chat.is === 'waiting') return [{ ...state, chat: { ...state.chat, pause } }, []];
  if (state.chat.is !== 'matched') return unchanged(state);
  const [searching, effects] = searchOn(state, 'partnerLeft', now);
  return [{ ...searching, chat: { .../** @type {Waiting} */ (searching.chat), pause } }, effects];
}

/** @param {State} state @param {Event} event @returns {Step} */
function matched(state, { matchId, mode = state.form.mode, partner = {}, textChat }) {
  if (state.chat.is !== 'waiting') return unchanged(state);
  const chat = /** @type {Matched} */ ({
    is: 'matched', matchId, mode, name: partner.name ?? '', interests: partner.interests ?? [], textChat: textChat !== false,
    away: false, typing: false, silent: false, blurred: { own: false, partner: false }, stream: mode === 'video' ? 'pending' : 'none',
  });
  return [{ ...state, chat, lines: [], linesOf: matchId, trouble: null, passing: null }, [{ do: 'matched' }]];
}

/**
 * Changes members of the current match.
 * @param {State} state
 * @param {Event} event an event with a `matchId` applies only to that match
 * @param {Partial<Matched>} change
 * @returns {Step}
 */
function inMatch(state, event, change) {
  if (state.chat.is !== 'matched' || (event.matchId && event.matchId !== state.chat.matchId)) return unchanged(state);
  return [{ ...state, chat: { ...state.chat, ...change } }, []];
}

/** @param {State} state @param {Event} event @returns {Step} */
function blur(state, event) {
  if (state.chat.is !== 'matched') return unchanged(state);
  return inMatch(state, event, { blurred: { ...state.chat.blurred, [event.whose]: event.blurred } });
}

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function ended(state, { matchId, reason }, now) {
  if (state.chat.is !== 'matched' || (matchId && matchId !== state.chat.matchId)) return unchanged(state);
  if (searchedOn.includes(reason)) return searchOn(state, reason, now);
  const { last, effects } = leave(state, now);
  const trouble = reason === 'stopped' ? null : { code: 'match_ended', message: '', pause: null };
  return [{ ...state, chat: { is: 'idle' }, last, question: null, trouble }, effects];
}

/** @param {State} state @param {Event} event @returns {Step} */
function heard(state, { text, mine }) {
  if (state.chat.is !== 'matched') return unchanged(state);
  if (mine && state.lines.some((line) => line.sent === 'pending' && line.text === text)) {
    return [{ ...state, lines: settle(state.lines, text, 'yes') }, []];
  }
  const lineCount = state.lineCount + 1;
  const chat = mine ? state.chat : { ...state.chat, typing: false };
  return [{ ...state, chat, lineCount, lines: addLine(state.lines, lineCount, mine ? 'me' : 'partner', text, 'yes') }, []];
}

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function refused(state, { verb, matchId, code, message = '', retryAfterMs }, now) {
  if (verb === 'report') return [{ ...state, reporting: state.question ? 'failed' : null }, []];
  // The match ended while the request was on its way, or the request was already fulfilled. Ignore the error.
  if (code === 'not_matched') return unchanged(state);
  const trouble = { code, message, pause: pauseOf(retryAfterMs, now) };
  if (verb === 'keep' && matchId) return [{ ...state, trouble, keeping: changeKeeping(state.keeping, matchId, { mine: false }) }, []];
  if (verb !== 'start' && verb !== 'next') return [{ ...state, trouble }, []];
  if (state.chat.is !== 'waiting') return unchanged(state);
  return [{ ...state, trouble, chat: { is: 'idle' } }, [{ do: 'focus', on: 'start' }]];
}

/** @param {number | undefined} milliseconds @param {number} now @returns {Pause | null} */
function pauseOf(milliseconds, now) {
  return milliseconds ? { until: now + milliseconds, seconds: Math.ceil(milliseconds / 1000) } : null;
}

/**
 * Returns the effect that removes a confirmation after `passingTime`, unless another one has replaced it by then.
 * @param {string} passing
 * @returns {Effect}
 */
function passes(passing) {
  return { do: 'later', after: passingTime, event: { type: 'passed', passing } };
}

/** @param {Line[]} lines @param {number} id @param {Line['who']} who @param {string} text @param {Line['sent']} sent */
function addLine(lines, id, who, text, sent) {
  return [...lines, { id, who, text, sent }].slice(-keptLines);
}

/** @param {Line[]} lines @param {number} id @param {Ending} ending a key for which the view has the text */
function addNote(lines, id, ending) {
  return addLine(lines, id, 'note', ending, 'yes');
}

/**
 * Updates the oldest pending line with this text.
 * @param {Line[]} lines
 * @param {string} text
 * @param {Line['sent']} sent
 */
function settle(lines, text, sent) {
  const index = lines.findIndex((line) => line.sent === 'pending' && line.text === text);
  return lines.map((line, at) => (at === index ? { ...line, sent } : line));
}
