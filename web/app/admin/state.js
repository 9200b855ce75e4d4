// The state of the operator's page: what was loaded, which view is open, and what happens next. Pure: events in, a new state and
// effects out.

/** @typedef {'overview' | 'nodes' | 'reports' | 'bans' | 'sessions' | 'recordings' | 'audit'} Tab */
/** @typedef {{at: number, [figure: string]: number}} Sample what the server counted at one moment (`AdminSample` in Swift) */
/** @typedef {{version: string, now: number, startedAt: number, intervalMs: number, keptSamples: number, samples: Sample[],
 *   certificateTrouble?: string, node?: string}} Overview why the server could not get a certificate, in its sentences; and its name, if it
 *   is a node of a cluster */
/**
 * @typedef {{node: string, life: number, state: string, requested?: 'draining' | 'serving', leaseMs?: number, fencedBy?: string,
 *   outOfService?: boolean, disconnectsInMs?: number, version?: string, sockets?: number, load?: number, places?: number, url?: string,
 *   address?: string, relays?: Relays}} ClusterNode
 *   what is not known is missing (`NodeList.Node` in Swift)
 */
/** @typedef {{connected: number, connecting: number, thinned: number, fault?: string}} Relays the relays from the asked node to another one:
 *   `thinned` of the connected ones lose packets, and `fault` says why others do not connect (`RelayStates` in Swift) */
/** @typedef {{asked: string, seenMsAgo?: number, nodes: ClusterNode[]}} Nodes the nodes of the cluster, as the asked one knows them */
/** @typedef {{at: number, from: 'reporter' | 'reported', text: string}} ChatLine */
/**
 * @typedef {{at: number, verdict?: 'ok' | 'warn' | 'blur' | 'end', warnings: number, blurs: number}} CameraSample what the operator's program
 *   decided about the reported person's camera; the image is loaded on request
 */
/**
 * @typedef {{id: number, at: number, closedAt?: number, matchId: string, reason: string, against: string, againstAddress: string, by: string,
 *   byAddress: string, banned: boolean, lines: ChatLine[], sample?: CameraSample}} Report
 */
/** @typedef {{subject: string, reason: string, at: number, until?: number}} Ban */
/** @typedef {{at: number, sessionId: string, subscriber: string, streamId: string, reason: string, paused: boolean, layer?: string}} Switch */
/** @typedef {{streamId: string, audio: boolean, video: boolean, kind: string, width?: number, height?: number, quality: string, qualityReason?: string}} Stream */
/**
 * @typedef {{connectionId: string, identity: string, name: string, joinedAt: number, reconnecting: boolean, subscriptions: number,
 *   streams: Stream[], lastSwitch?: Switch}} Member
 */
/**
 * @typedef {{id: string, mediaMode: string, room?: string, recorded: boolean, broadcast: boolean, memberCount: number, streamCount: number,
 *   members: Member[]}} Session
 */
/** @typedef {{count: number, sessions: Session[], switches: Switch[], from: number,
 *   pageSize: number}} Sessions a page of them: `from` is how many come before it */
/** @typedef {{id: string, sessionId: string, name?: string, status: string, reason: string, at: number, durationMs?: number, bytes?: number}} Recording */
/** @typedef {{archiveCount: number, archives: Recording[], broadcastCount: number, broadcasts: Recording[]}} Recordings */
/** @typedef {{at: number, actor: string, action: string, subject: string, detail: string}} Entry */
/** @typedef {'missing' | 'wrong' | 'unreachable' | {text: string}} Trouble a known one, or the server's sentence */
/** @typedef {{kind: 'node', node: string, state: 'draining' | 'serving'}} NodeAct */
/** @typedef {NodeAct | {kind: 'ban', report: number, reason: string, duration: string} | {kind: 'dismiss', report: number} | {kind: 'warn', report: number, text: string} |
 *   {kind: 'banSubject', subject: string, reason: string, duration: string} | {kind: 'lift', subject: string}} Act */

/**
 * @typedef {object} State
 * @property {'locked' | 'opening' | 'open'} phase
 * @property {Trouble | null} trouble why the page did not open
 * @property {boolean} isStale whether the latest request was not answered
 * @property {Tab} tab
 * @property {Overview | null} overview
 * @property {Nodes | null} nodes
 * @property {Report[] | null} reports
 * @property {number | null} openCount the number of open reports, which may be more than those in `reports`
 * @property {boolean} showClosed
 * @property {{count: number, bans: Ban[]} | null} bans
 * @property {Sessions | null} sessions
 * @property {number} sessionsFrom how many sessions come before the shown page
 * @property {Recordings | null} recordings
 * @property {Entry[] | null} audit
 * @property {NodeAct | null} question what the operator is asked to confirm
 * @property {string[]} busy the keys of acts that wait for their answer
 * @property {{tone: 'good' | 'bad', act: Act | null, subject: string, text: string,
 *   obstacle?: 'ignored' | 'notConnected'} | null} note the result of the latest act, with why a warning was not sent
 */

/** @typedef {{type: 'enter', token: string} | {type: 'lock'} | {type: 'tick'} | {type: 'changed', views: string[]} | {type: 'tab', tab: Tab} | {type: 'showClosed', on: boolean} | {type: 'page', from: number} |
 *   {type: 'loaded', what: Tab, data: any} | {type: 'failed', trouble: Trouble} | {type: 'act', act: Act} | {type: 'ask', act: NodeAct} | {type: 'answer', yes: boolean} |
 *   {type: 'acted', act: Act, data: any} | {type: 'actFailed', act: Act, trouble: Trouble} | {type: 'closeNote'}} Event */
/** @typedef {{do: 'keep', token: string} | {do: 'forget'} | {do: 'load', what: Tab, query: string} | {do: 'act', act: Act}} Effect */

export const tabs = /** @type {readonly Tab[]} */ (['overview', 'nodes', 'reports', 'bans', 'sessions', 'recordings', 'audit']);

/**
 * The tabs that the page has: a server that is alone has no nodes.
 * @param {State} state
 */
export const tabsOf = ({ overview }) => tabs.filter((tab) => tab !== 'nodes' || overview?.node !== undefined);

/** @returns {State} */
export const initial = () => ({
  phase: 'locked', trouble: null, isStale: false, tab: 'overview', overview: null, nodes: null, reports: null, openCount: null, showClosed: false, bans: null, sessions: null, sessionsFrom: 0,
  recordings: null, audit: null, question: null, busy: [], note: null,
});

/** @param {Act} act */
export function keyOf(act) {
  if ('report' in act) return `report ${act.report}`;
  return act.kind === 'node' ? `node ${act.node}` : `ban ${act.subject}`;
}

/** @param {State} state @param {Tab} what @returns {{do: 'load', what: Tab, query: string}} */
function load(state, what) {
  return { do: 'load', what, query: queryOf(state, what) };
}

/** @param {State} state @param {Tab} what */
function queryOf({ overview, showClosed, sessionsFrom }, what) {
  const since = overview?.samples.at(-1)?.at;
  switch (what) {
    case 'overview': return since === undefined ? '' : `?since=${since}`;
    case 'reports': return showClosed ? '?all=1' : '';
    case 'sessions': return sessionsFrom ? `?from=${sessionsFrom}` : '';
    default: return '';
  }
}

/**
 * What is loaded regularly: the figures, the number of open reports, and what is shown.
 * @param {State} state @returns {{do: 'load', what: Tab, query: string}[]}
 */
const refresh = (state) => [...new Set(/** @type {Tab[]} */ (['overview', 'reports', state.tab]))].map((what) => load(state, what));

/**
 * @param {State} state @param {Event} event
 * @returns {[State, Effect[]]}
 */
export function step(state, event) {
  switch (event.type) {
    case 'enter': {
      if (state.phase === 'opening') return [state, []];
      if (event.token === '') return [{ ...initial(), trouble: 'missing' }, []];
      const opening = /** @type {State} */ ({ ...initial(), phase: 'opening' });
      return [opening, [{ do: 'keep', token: event.token }, load(opening, 'overview')]];
    }
    case 'lock': return [initial(), [{ do: 'forget' }]];
    case 'tick': return [state, state.phase === 'open' ? refresh(state) : []];
    case 'changed': return [state, state.phase === 'open' ? refresh(state).filter(({ what }) => event.views.includes(what)) : []];
    case 'tab': {
      const next = { ...state, tab: event.tab };
      return [next, state.phase === 'open' && event.tab !== state.tab ? [load(next, event.tab)] : []];
    }
    case 'showClosed': {
      const next = { ...state, showClosed: event.on };
      return [next, [load(next, 'reports')]];
    }
    case 'page': {
      const next = { ...state, sessionsFrom: Math.max(0, event.from) };
      return [next, [load(next, 'sessions')]];
    }
    case 'loaded': return loaded(state, event.what, event.data);
    case 'failed': return failed(state, event.trouble);
    case 'act': return begin(state, event.act);
    case 'ask': return [state.phase === 'open' ? { ...state, question: event.act } : state, []];
    case 'answer': {
      const { question } = state;
      if (!question) return [state, []];
      const answered = { ...state, question: null };
      return event.yes ? begin(answered, question) : [answered, []];
    }
    case 'acted': {
      if (state.phase !== 'open') return [state, []];
      const { act } = event;
      const subject = subjectOf(act, event.data);
      // A person who would not see the warning is not warned, and the report stays open.
      const isDone = act.kind !== 'warn' || event.data.delivered;
      const obstacle = isDone ? undefined : event.data.obstacle;
      const next = /** @type {State} */ ({ ...done(state, act), note: { tone: isDone ? 'good' : 'bad', act, subject, text: '', obstacle } });
      return [next, /** @type {Tab[]} */ (act.kind === 'node' ? ['nodes'] : ['reports', 'bans']).map((what) => load(next, what))];
    }
    case 'actFailed': {
      if (state.phase !== 'open') return [state, []];
      if (event.trouble === 'wrong') return failed(state, event.trouble);
      const text = typeof event.trouble === 'object' ? event.trouble.text : '';
      const next = /** @type {State} */ ({ ...done(state, event.act), note: { tone: 'bad', act: null, subject: '', text } });
      return [next, 'report' in event.act ? [load(next, 'reports')] : event.act.kind === 'node' ? [load(next, 'nodes')] : []];
    }
    case 'closeNote': return [{ ...state, note: null }, []];
  }
}

/** @param {State} state @param {Act} act @returns {[State, Effect[]]} */
function begin(state, act) {
  const key = keyOf(act);
  if (state.phase !== 'open' || state.busy.includes(key)) return [state, []];
  return [{ ...state, busy: [...state.busy, key], note: null }, [{ do: 'act', act }]];
}

/** @param {Act} act @param {any} data the answer to it @returns {string} what it was about */
function subjectOf(act, data) {
  switch (act.kind) {
    case 'ban': case 'banSubject': return data.bans.map((/** @type {Ban} */ ban) => ban.subject).join(', ');
    case 'lift': return act.subject;
    case 'node': return act.node;
    default: return '';
  }
}

/** @param {State} state @param {Act} act */
const done = (state, act) => ({ ...state, busy: state.busy.filter((key) => key !== keyOf(act)) });

/** @param {State} state @param {Tab} what @param {any} data @returns {[State, Effect[]]} */
function loaded(state, what, data) {
  if (state.phase === 'locked') return [state, []];
  const next = /** @type {State} */ ({ ...state, phase: 'open', trouble: null, isStale: false });
  switch (what) {
    case 'overview':
      next.overview = merge(state.overview, data);
      // The server was started again, and is alone now.
      if (!tabsOf(next).includes(next.tab)) next.tab = 'overview';
      break;
    case 'nodes': next.nodes = data; break;
    case 'reports': [next.reports, next.openCount] = [data.reports, data.openCount]; break;
    case 'bans': next.bans = data; break;
    case 'sessions': return loadedSessions(next, data);
    case 'recordings': next.recordings = data; break;
    case 'audit': next.audit = data.entries; break;
  }
  // The first answer shows that the token is right.
  return [next, state.phase === 'opening' ? [load(next, 'reports')] : []];
}

/** @param {State} state @param {Sessions} data @returns {[State, Effect[]]} */
function loadedSessions(state, data) {
  // A late answer, for a page that the operator has left.
  if (data.from !== state.sessionsFrom) return [state, []];
  const last = Math.max(0, Math.ceil(data.count / data.pageSize) - 1) * data.pageSize;
  if (data.from <= last) return [{ ...state, sessions: { ...data, sessions: data.sessions.slice(0, data.pageSize) } }, []];
  // Sessions have ended, so that this page is gone.
  const next = { ...state, sessionsFrom: last };
  return [next, [load(next, 'sessions')]];
}

/**
 * Returns the place of the shown page in the list of sessions, counted from 1, and where its neighbors begin; null for those that do
 * not exist.
 * @param {Sessions} sessions
 */
export function pageOf({ count, from, pageSize, sessions }) {
  return {
    first: from + 1, last: from + sessions.length, previous: from > 0 ? Math.max(0, from - pageSize) : null,
    next: from + pageSize < count ? from + pageSize : null,
  };
}

/** @param {State} state @param {Trouble} trouble @returns {[State, Effect[]]} */
function failed(state, trouble) {
  if (state.phase === 'locked') return [state, []];
  // The server was restarted with another token, or this one was mistyped.
  if (trouble === 'wrong') return [{ ...initial(), trouble }, [{ do: 'forget' }]];
  if (state.phase === 'opening') return [{ ...initial(), trouble }, [{ do: 'forget' }]];
  return [{ ...state, isStale: true }, []];
}

/**
 * Adds the new samples to those that are known, and drops those that are too old. After a restart of the server, only the new ones
 * count.
 * @param {Overview | null} known @param {Overview} news @returns {Overview}
 */
export function merge(known, news) {
  if (!known || known.startedAt !== news.startedAt) return news;
  const last = known.samples.at(-1)?.at ?? -Infinity;
  const samples = [...known.samples, ...news.samples.filter(({ at }) => at > last)].slice(-news.keptSamples);
  return { ...news, samples };
}

/**
 * Returns the tab to which a key leads from another one; null for other keys.
 * @param {Tab} tab @param {string} key @param {readonly Tab[]} tabs those that the page has @returns {Tab | null}
 */
export function tabAfter(tab, key, tabs) {
  const index = tabs.indexOf(tab);
  switch (key) {
    case 'ArrowRight': return tabs[(index + 1) % tabs.length];
    case 'ArrowLeft': return tabs[(index + tabs.length - 1) % tabs.length];
    case 'Home': return tabs[0];
    case 'End': return tabs[tabs.length - 1];
    default: return null;
  }
}
