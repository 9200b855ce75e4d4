// Small elements that the views of the operator's page share.

/** @typedef {import('./strings.js').Strings['admin']} Words */

/** @param {string} kind @param {string} className @param {string} [text] */
export function make(kind, className, text) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * Makes the children of a card: a title with tags, and what `add` adds.
 * @param {string} title @param {string} hint
 */
export function makeCard(title, hint) {
  const top = make('div', 'card-top');
  const tags = make('span', 'chips');
  top.append(make('h2', 'card-title', title), make('span', 'hint', hint), tags);
  const parts = [top];
  return {
    parts,
    /** @param {string} text @param {string} [level] */
    tag(text, level = '') { tags.append(make('span', `chip ${level}`.trim(), text)); },
    /** @param {HTMLElement[]} elements */
    add(...elements) { parts.push(...elements); },
  };
}

/**
 * Makes the children of a line in a list.
 * @param {string} title @param {string[]} facts empty ones are left out @param {string} [className]
 */
export function makeLine(title, facts, className = '') {
  const words = make('span', 'line-words');
  words.append(make('span', `line-title ${className}`.trim(), title), make('span', 'hint', facts.filter((fact) => fact !== '').join(' · ')));
  return [words];
}

/** @param {HTMLElement} select @param {Words} words */
export function fillDurations(select, words) {
  for (const [value, text] of Object.entries(words.durations)) {
    const option = Object.assign(document.createElement('option'), { value, textContent: text, selected: value === '7d' });
    select.append(option);
  }
}
