// Keyboard shortcuts in the room: single keys, which the user can turn off, and Escape. Single keys do nothing while
// the user types; all of them do nothing with Ctrl, Alt or Meta.

/** @typedef {import('./types.js').Event} Event */
/** @type {Record<string, Event>} */
const shortcuts = {
  m: { type: 'mute' },
  v: { type: 'cameraOff' },
  s: { type: 'share' },
  h: { type: 'hand' },
  c: { type: 'panel', is: 'chat' },
  p: { type: 'panel', is: 'people' },
  l: { type: 'nextLayout' },
  i: { type: 'dialog', is: 'invite' },
  '?': { type: 'dialog', is: 'keys' },
};

/** @param {() => import('./types.js').State} read @param {(event: Event) => void} dispatch */
export function listenToKeys(read, dispatch) {
  document.addEventListener('keydown', (event) => {
    const { key, repeat, isComposing, ctrlKey, altKey, metaKey, target } = event;
    const state = read();
    const isElsewhere = event.defaultPrevented || repeat || isComposing || ctrlKey || altKey || metaKey || document.querySelector('dialog[open]');
    if (isElsewhere || state.place.is !== 'in') return;
    if (key === 'Escape') return escape(state, dispatch);
    if (!state.kept.keys || (target instanceof Element && target.closest('input, textarea, select, summary'))) return;
    const name = key.toLowerCase();
    if (name === 'f') return toggleFullScreen();
    const shortcut = shortcuts[name];
    if (!shortcut) return;
    event.preventDefault();
    dispatch(shortcut);
  });
}

/** @param {import('./types.js').State} state @param {(event: Event) => void} dispatch */
function escape(state, dispatch) {
  if (document.querySelector('details.more[open]')) return;
  if (state.popup) dispatch({ type: 'popup', is: state.popup });
  else if (state.panel) dispatch({ type: 'panel', is: state.panel });
}

function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  else document.documentElement.requestFullscreen?.().catch(() => {});
}
