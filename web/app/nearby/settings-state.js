// The settings part of the state machine: status, devices, blocked people, stored data. All functions are pure.
import { passingTime } from './call-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */

/** How many blocked people's names are stored. Other blocked people appear with the name that the server sends. */
const maxBlockedNames = 200;

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/**
 * Shows a confirmation for `passingTime`.
 * @param {State} state
 * @param {string} passing
 * @param {Effect[]} [effects]
 * @returns {Step}
 */
const good = (state, passing, effects = []) => [
  { ...state, passing, trouble: null }, [...effects, { do: 'later', after: passingTime, event: { type: 'passed', passing } }],
];

/** @type {import('./types.js').Handlers} */
export const settingsHandlers = {
  settings: (state, { change }) => settings(state, change),
  saved: (state) => good(state, 'saved'),

  makeCode: (state) => [state, [{ do: 'makeCode' }]],
  codeMade: (state, { code, expiresInMs }, now) => [
    { ...state, code: { code, until: now + expiresInMs } }, [{ do: 'later', after: expiresInMs, event: { type: 'codeOver', code } }],
  ],
  codeOver: (state, { code }) => [state.code?.code === code ? { ...state, code: null } : state, []],
  linked: (state) => good({ ...state, question: null, code: null }, 'linked', [{ do: 'askDevices' }, { do: 'askContacts' }, { do: 'askLog', before: null }]),
  devices: (state, { devices }) => [{ ...state, devices }, []],
  unlinked: (state) => good(state, 'deviceUnlinked', [{ do: 'askDevices' }]),

  blocked: (state, { people }) => [{ ...state, blocked: people }, []],
  unblock: (state, { personId }) => [state, [{ do: 'unblock', personId }]],
  blockDone: (state) => good(state, 'personBlocked', [{ do: 'askBlocked' }, { do: 'askContacts' }]),
  unblockDone: (state) => good(state, 'personUnblocked', [{ do: 'askBlocked' }]),
  removeContact: (state, { personId }) => [state, [{ do: 'removeContact', personId }]],

  forgetCall: (state, { callId }) => [
    { ...state, log: { ...state.log, calls: state.log.calls?.filter((call) => call.callId !== callId) ?? null } }, [{ do: 'forgetCall', callId }],
  ],

  pushIs: (state, { is }) => [{ ...state, push: is }, []],
  push: (state, { on }) => push(state, on),

  exportAll: (state) => [state, [{ do: 'export' }]],
  copied: (state) => good(state, 'copied'),

  ask: (state, { question }) => [{ ...state, question }, []],
  unask: (state) => [{ ...state, question: null }, []],
  agree: (state) => agree(state),
};

/** @param {State} state @param {Partial<import('./types.js').Me>} change @returns {Step} */
function settings(state, change) {
  if (!state.me) return unchanged(state);
  const form = change.name === undefined ? state.form : { ...state.form, name: change.name };
  return [{ ...state, form }, [{ do: 'remember', form, kept: state.kept }, { do: 'set', change }]];
}

/** @param {State} state @param {boolean} on @returns {Step} */
function push(state, on) {
  if (state.push === 'unavailable' || state.push === 'busy') return unchanged(state);
  const kept = { ...state.kept, push: on };
  return [{ ...state, kept, push: 'busy' }, [{ do: 'remember', form: state.form, kept }, { do: 'push', on }]];
}

/** @param {State} state @param {import('./types.js').Person} person @returns {Step} */
function block(state, { personId, name }) {
  // Keep the name that the person had when the user blocked them, because the person may change it later.
  const others = state.kept.blockedNames.filter(([id]) => id !== personId);
  const kept = { ...state.kept, blockedNames: /** @type {[string, string][]} */ ([...others, [personId, name]]).slice(-maxBlockedNames) };
  return [{ ...state, kept }, [{ do: 'remember', form: state.form, kept }, { do: 'block', personId }]];
}

/**
 * Carries out the action that the user confirmed.
 * @param {State} state
 * @returns {Step}
 */
function agree(state) {
  const { question } = state;
  if (!question) return unchanged(state);
  const answered = { ...state, question: null };
  switch (question.is) {
    case 'delete': return [answered, [{ do: 'deleteEverything' }]];
    case 'link': return [answered, [{ do: 'useLink', code: question.code }]];
    case 'unlink': return [answered, [{ do: 'unlink', deviceId: question.device.deviceId }]];
    case 'block': return block(answered, question.person);
    case 'forgetLog': return [{ ...answered, log: { calls: [], next: null }, missed: 0 }, [{ do: 'forgetCall', callId: null }]];
  }
}
