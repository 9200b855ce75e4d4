// Lists that update while the user looks at them. A row keeps its element while it shows the same person or call, so that focus
// and an open menu are kept. Names are written only with `textContent`.
import { icon, initialOf, setAttribute } from './dom.js';

/**
 * Shows one row for each item, in the order of the items. Rebuilds a row only when its item has changed.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} items
 * @param {(item: T) => string} key returns an id that is unique in the list
 * @param {(item: T) => HTMLElement[]} fill returns the row's children
 * @param {(row: HTMLElement, item: T) => void} [mark] sets attributes of the row; called on every `showRows`
 */
export function showRows(list, items, key, fill, mark = () => {}) {
  const known = new Map([...list.children].map((row) => [/** @type {HTMLElement} */ (row).dataset.key, /** @type {HTMLElement} */ (row)]));
  const rows = items.map((item) => {
    const row = known.get(key(item)) ?? document.createElement('li');
    known.delete(key(item));
    row.className = 'row';
    row.dataset.key = key(item);
    const content = JSON.stringify(item);
    if (row.dataset.content !== content) {
      row.dataset.content = content;
      refill(row, fill(item));
    }
    mark(row, item);
    return row;
  });
  for (const row of known.values()) row.remove();
  rows.forEach((row, index) => {
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
  });
}

/**
 * Replaces a row's children. Keeps an open menu open, and the focus on the button with the same `data-do`.
 * @param {HTMLElement} row
 * @param {HTMLElement[]} children
 */
function refill(row, children) {
  const focused = row.contains(document.activeElement) ? document.activeElement?.getAttribute('data-do') : null;
  const open = row.querySelector('details[open]') !== null;
  row.replaceChildren(...children);
  if (open) row.querySelector('details')?.setAttribute('open', '');
  if (focused) /** @type {HTMLElement | null} */ (row.querySelector(`[data-do="${focused}"]`))?.focus();
}

/** @param {string} name @param {boolean | null} online null if the status is not shown */
export function avatar(name, online = null) {
  const element = document.createElement('span');
  element.className = 'initial';
  element.setAttribute('aria-hidden', 'true');
  element.textContent = initialOf(name);
  if (online !== null) element.dataset.online = online ? 'yes' : 'no';
  return element;
}

/** @param {string} name @param {string} hint */
export function wordsOf(name, hint) {
  const element = document.createElement('span');
  element.className = 'row-words';
  const title = document.createElement('span');
  title.className = 'row-name';
  title.textContent = name;
  const small = document.createElement('span');
  small.className = 'hint';
  small.textContent = hint;
  element.append(title, small);
  return element;
}

/**
 * @param {{does: string, label?: string, text?: string, icon?: string, className?: string}} how `label`: the
 *   accessible name, if the text does not name the person
 * @param {() => void} press
 */
export function rowButton({ does, label, text, icon: picture, className = 'button small' }, press) {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = className;
  element.dataset.do = does;
  if (picture) element.append(icon(picture));
  if (text) element.append(text);
  setAttribute(element, 'aria-label', label ?? null);
  element.addEventListener('click', press);
  return element;
}

/**
 * Creates the menu with further actions for a person.
 * @param {string} label
 * @param {[string, () => void][]} items
 */
export function menu(label, items) {
  const details = document.createElement('details');
  details.className = 'more';
  const summary = document.createElement('summary');
  summary.setAttribute('aria-label', label);
  summary.dataset.do = 'more';
  summary.append(icon('dots'));
  const box = document.createElement('div');
  box.className = 'more-menu';
  box.append(...items.map(([text, press], index) => rowButton({ does: `menu-${index}`, text, className: '' }, () => {
    details.open = false;
    // The item is hidden now, so a dialog that it opens could not return the focus to it.
    summary.focus({ preventScroll: true });
    press();
  })));
  details.append(summary, box);
  // Scroll to the menu, part of which may be out of view near the end of a list.
  details.addEventListener('toggle', () => { if (details.open) box.scrollIntoView({ block: 'nearest' }); });
  return details;
}

/** Makes an open menu close on a click elsewhere, when another one opens, and on Escape. */
export function closeMenus() {
  const close = (/** @type {EventTarget | null} */ but) => {
    for (const open of document.querySelectorAll('details.more[open]')) {
      if (!(but instanceof Node && open.contains(but))) open.removeAttribute('open');
    }
  };
  document.addEventListener('click', ({ target }) => close(target));
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    const open = document.querySelector('details.more[open]');
    open?.querySelector('summary')?.focus();
    close(null);
  });
}
