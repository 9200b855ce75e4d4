// The form on the first screen: reads the input, shows interests as chips, and passes changes to the state machine.
import { box, byId, icon, input, setText } from '../shared/dom.js';
import { withInterests } from './interests.js';
import { limits } from './state.js';

/** @typedef {import('./types.js').Form} Form */
/** @typedef {import('../shared/strings.js').Strings} Strings */

/**
 * @param {Form} form the form saved in an earlier visit
 * @param {Strings} strings
 * @param {(event: import('./types.js').Event) => void} dispatch
 */
export function setUpForm(form, strings, dispatch) {
  const change = (/** @type {Partial<Form>} */ change) => dispatch({ type: 'form', change });
  const name = input('name');
  name.value = form.name;
  name.addEventListener('input', () => change({ name: [...name.value.trim()].slice(0, limits.name).join('') }));

  const agree = input('agree');
  agree.checked = form.agreed;
  agree.addEventListener('change', () => change({ agreed: agree.checked }));
  // If the user agreed in an earlier visit, show a note instead of the checkbox.
  box('agree-label').hidden = form.agreed;
  box('agreed-before').hidden = !form.agreed;
  byId('rules-list', HTMLUListElement).append(...strings.rulesList.map((rule) => {
    const item = document.createElement('li');
    item.textContent = rule;
    return item;
  }));

  for (const mode of /** @type {const} */ (['video', 'text'])) {
    input(`mode-${mode}`).addEventListener('change', () => change({ mode }));
  }
  byId('form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    commitInterests();
    dispatch({ type: 'start' });
  });
  const commitInterests = setUpInterests(form.interests, strings, (interests) => change({ interests }));
}

/**
 * @param {string[]} remembered
 * @param {Strings} strings
 * @param {(interests: string[]) => void} change
 * @returns {() => void} a function that adds the text in the field, which is not an interest yet
 */
function setUpInterests(remembered, strings, change) {
  let interests = remembered;
  const field = input('interests');
  const chips = byId('chips', HTMLUListElement);
  const say = (/** @type {string} */ text) => setText(box('interests-news'), text);

  /** @param {string[]} changed */
  const set = (changed) => {
    interests = changed;
    const full = interests.length >= limits.interests;
    chips.replaceChildren(...interests.map((text) => chip(text, strings, () => remove(text))));
    chips.hidden = !interests.length;
    field.placeholder = interests.length ? '' : strings.interestsPlaceholder;
    setText(box('interests-hint'), full ? strings.interestsFull : strings.interestsHint);
  };
  const add = () => {
    const longer = withInterests(interests, field.value);
    const added = longer.slice(interests.length);
    field.value = '';
    if (!added.length) return;
    set(longer);
    change(longer);
    say(added.map(strings.interestAdded).join(' '));
  };
  /** @param {string} text */
  const remove = (text) => {
    const at = interests.indexOf(text);
    set(interests.filter((one) => one !== text));
    change(interests);
    say(strings.interestRemoved(text));
    // Keep the focus in the row: on the chip that takes the removed one's place, or in the field if there is no chip.
    const buttons = chips.querySelectorAll('button');
    (buttons[Math.min(at, buttons.length - 1)] ?? field).focus();
  };

  listen(field, add, () => interests.length > 0 && remove(interests[interests.length - 1]));
  set(interests);
  return add;
}

/**
 * @param {HTMLInputElement} field
 * @param {() => void} add
 * @param {() => void} removeLast
 */
function listen(field, add, removeLast) {
  field.addEventListener('keydown', (event) => {
    // While an input method is composing, Enter belongs to it.
    if (event.isComposing) return;
    if (event.key === ',' || (event.key === 'Enter' && field.value.trim())) {
      event.preventDefault();
      add();
    } else if (event.key === 'Backspace' && !field.value) {
      removeLast();
      field.focus();
    }
  });
  field.addEventListener('input', () => {
    // Check for commas here too: phone keyboards do not report keys, and pasted text may contain several interests.
    if (field.value.includes(',')) add();
  });
  field.addEventListener('blur', add);
}

/** @param {string} text @param {Strings} strings @param {() => void} remove */
function chip(text, strings, remove) {
  const item = document.createElement('li');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'chip';
  const words = document.createElement('bdi');
  words.textContent = text;
  button.append(words, icon('cross'));
  button.setAttribute('aria-label', strings.removeInterest(text));
  button.addEventListener('click', remove);
  button.addEventListener('keydown', (event) => {
    if (event.key !== 'Backspace' && event.key !== 'Delete') return;
    event.preventDefault();
    remove();
  });
  item.append(button);
  return item;
}
