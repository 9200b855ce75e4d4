// Turns a state into text: the status line, the current problem, and the next steps. All functions are pure.

/** @typedef {import('./types.js').State} State */
/** @typedef {import('../shared/strings.js').Strings} Strings */
/** @typedef {'calm' | 'busy' | 'good' | 'warn' | 'bad'} Tone */
/** @typedef {{text: string, tone: Tone}} Status */
/** @typedef {'retryLink' | 'takeOver' | 'reload' | 'start' | 'openMedia' | 'openVoice' | 'useText' | 'report' | 'dismiss' | 'unblock' | 'check'} Action */
/** @typedef {{text: string, actions: Action[], tone: Tone}} Notice */

/**
 * Returns the whole seconds left until `then`, at least 1.
 * @param {number} then
 * @param {number} now
 */
export function secondsUntil(then, now) {
  return Math.max(1, Math.ceil((then - now) / 1000));
}

/** @param {State} state @param {Strings} strings @param {number} now @returns {Status} */
export function statusOf(state, strings, now) {
  const words = strings.status;
  switch (state.link.is) {
    case 'closed': return { text: words.closed, tone: 'bad' };
    case 'reconnecting': return { text: words.dropped, tone: 'warn' };
    case 'connecting': return { text: state.chat.is === 'preparing' ? words.connectingStart : words.connecting, tone: 'busy' };
  }
  if (state.passing) return { text: state.passing === 'away' ? words.longAway : words[state.passing], tone: state.passing === 'away' ? 'calm' : 'good' };
  switch (state.chat.is) {
    case 'waiting': return waitingStatus(state.chat, words, now);
    case 'matched': return matchStatus(state.chat, words);
  }
  if (state.media.is === 'asking') return { text: words.allow, tone: 'busy' };
  if (state.media.is === 'failed' && state.form.mode === 'video') return { text: words.noCamera, tone: 'warn' };
  return { text: state.form.agreed ? words.ready : words.readyRules, tone: 'calm' };
}

/** @param {import('./types.js').Waiting} chat @param {Strings['status']} words @param {number} now @returns {Status} */
function waitingStatus({ pause, after, name }, words, now) {
  if (pause && pause.until > now) return { text: words.penalty(pause.seconds), tone: 'calm' };
  if (after === 'partnerLeft' || after === 'partnerNext' || after === 'blocked') return { text: words[after](name), tone: 'busy' };
  if (after === 'connectionLost') return { text: words.connectionLost, tone: 'busy' };
  return { text: after ? words.lookingNext : words.looking, tone: 'busy' };
}

/** @param {import('./types.js').Matched} chat @param {Strings['status']} words @returns {Status} */
function matchStatus({ name, away, stream }, words) {
  if (away) return { text: words.away(name), tone: 'warn' };
  switch (stream) {
    case 'none': return { text: words.writing(name), tone: 'good' };
    case 'pending': return { text: words.found(name), tone: 'busy' };
    case 'missing': return { text: words.noStream(name), tone: 'warn' };
    case 'stalled': return { text: words.stalled(name), tone: 'warn' };
    case 'live': return { text: words.talking(name), tone: 'good' };
  }
}

/**
 * Returns the most important notice to show above everything else, or null if there is none.
 * @param {State} state
 * @param {Strings} strings
 * @param {number} now
 * @returns {Notice | null}
 */
export function noticeOf(state, strings, now) {
  if (state.link.is === 'closed') return closedNotice(state.link, strings);
  if (state.warning) return warningNotice(state.warning, state, strings);
  if (state.trouble) return troubleNotice(state.trouble, state, strings, now);
  // Show camera problems here only while waiting or matched. On the first screen, the preview shows them.
  if (state.media.is === 'failed' && (state.chat.is === 'waiting' || state.chat.is === 'matched')) {
    return { text: strings.media[state.media.why], actions: mediaActions(state.media.why), tone: 'warn' };
  }
  if (state.chat.is === 'matched' && state.chat.blurred.own) return { text: strings.ownBlurred, actions: [], tone: 'warn' };
  if (state.chat.is === 'matched' && state.chat.silent) return { text: strings.silent, actions: ['unblock'], tone: 'warn' };
  if (state.chat.is === 'idle' && state.last) {
    return { text: strings.lastPerson(state.last.name), actions: ['report', 'dismiss'], tone: 'calm' };
  }
  return null;
}

/** @param {import('./types.js').MediaTrouble} why @returns {Action[]} */
export function mediaActions(why) {
  if (why === 'insecure') return ['useText', 'openMedia'];
  return why === 'missing' || why === 'busy' ? ['openMedia', 'openVoice', 'useText'] : ['openMedia', 'useText'];
}

/** @param {{code: string, message: string}} link @param {Strings} strings @returns {Notice} */
function closedNotice({ code, message }, strings) {
  const text = strings.troubles[/** @type {keyof Strings['troubles']} */ (code)];
  switch (code) {
    case 'version_unsupported': return { text, actions: ['reload'], tone: 'bad' };
    // The server's message says when the ban ends.
    case 'banned': return { text: message ? `${text} ${message}` : text, actions: [], tone: 'bad' };
    case 'forbidden_origin': return { text, actions: [], tone: 'bad' };
    case 'replaced': return { text, actions: ['takeOver'], tone: 'bad' };
    case 'connect_failed': return { text, actions: ['retryLink', 'check'], tone: 'bad' };
    default: return { text: text ?? (message || strings.troubles.connect_failed), actions: ['retryLink'], tone: 'bad' };
  }
}

/** @param {import('./types.js').Warning} warning @param {State} state @param {Strings} strings @returns {Notice} */
function warningNotice({ source, ends, text }, state, strings) {
  const words = strings.warnings;
  const parts = [ends ? words.ended : source === 'operator' ? words.operator : words.check, text, ends ? words.again : words.next];
  return { text: parts.filter(Boolean).join(' '), actions: ends && state.chat.is === 'idle' ? ['start', 'dismiss'] : ['dismiss'], tone: ends ? 'bad' : 'warn' };
}

/** @param {import('./types.js').Trouble} trouble @param {State} state @param {Strings} strings @param {number} now @returns {Notice} */
function troubleNotice({ code, message, pause }, state, strings, now) {
  const known = strings.troubles[/** @type {keyof Strings['troubles']} */ (code)];
  const problem = known ?? (message || strings.troubles.unknown);
  const text = pause && pause.until > now ? strings.tryingIn(problem, pause.seconds) : problem;
  /** @type {Action[]} */
  const actions = state.chat.is === 'idle' && state.form.agreed && code !== 'match_ended' ? ['start', 'dismiss'] : ['dismiss'];
  return { text, actions, tone: 'warn' };
}

/**
 * Returns the text that says why the Start button is disabled, or null if it is enabled.
 * @param {State} state
 * @param {Strings} strings
 */
export function startReason(state, strings) {
  if (state.link.is === 'closed') return strings.startClosed;
  return state.form.agreed ? null : strings.startNeedsRules;
}
