// Helpers for elements. Setters write only what changed, because a screen reader reads a live region each time its text is set.

import { at } from './base.js';

/**
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return element;
}

/** @param {string} id */
export const box = (id) => byId(id, HTMLElement);
/** @param {string} id */
export const button = (id) => byId(id, HTMLButtonElement);
/** @param {string} id */
export const input = (id) => byId(id, HTMLInputElement);

/** @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {string} name @param {string | null} value null removes the attribute */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** @param {HTMLElement} element @param {boolean} shown */
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/** @param {HTMLButtonElement | HTMLTextAreaElement} element @param {boolean} enabled */
export function enable(element, enabled) {
  if (element.disabled === enabled) element.disabled = !enabled;
}

/**
 * Moves an element to another parent, unless it is already there. Does not remove the element first, so that a video
 * in it keeps playing.
 * @param {HTMLElement} element
 * @param {HTMLElement} parent
 */
export function moveInto(element, parent) {
  if (element.parentElement !== parent) parent.append(element);
}

/** @param {string} name one of the symbols in icons.svg */
export const iconURL = (name) => at(`/app/shared/icons.svg#${name}`);

/** @param {string} name one of the symbols in icons.svg */
export function icon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(space, 'use');
  use.setAttribute('href', iconURL(name));
  svg.append(use);
  return svg;
}

/**
 * Returns the initial to show instead of a video: `?` for an empty name.
 * @param {string} name
 */
export const initialOf = (name) => [...(name || '?')][0].toUpperCase();

/**
 * Shows a row of buttons with the next steps. Rebuilds the row only when the steps change, so that the focus stays.
 * @param {HTMLElement} row
 * @param {string[]} actions
 * @param {Record<string, string>} names
 */
export function showActions(row, actions, names) {
  const key = actions.join(' ');
  if (row.dataset.actions === key) return;
  row.dataset.actions = key;
  row.replaceChildren(...actions.map((action, index) => {
    const element = document.createElement('button');
    element.type = 'button';
    element.className = index === 0 && action !== 'dismiss' ? 'button strong small' : 'button small';
    element.dataset.action = action;
    element.textContent = names[action];
    return element;
  }));
}

/**
 * Handles clicks on the buttons of the rows that `showActions` creates.
 * @param {Record<string, () => void>} actions
 */
export function onActions(actions) {
  document.addEventListener('click', ({ target }) => {
    const action = target instanceof HTMLElement ? target.dataset.action : undefined;
    if (action) actions[action]();
  });
}
