// Draws the nodes of a cluster, and asks before a node is taken out of service or put back.
import { box, button, byId, setAttribute, setText } from '../shared/dom.js';
import { rowButton, showRows } from '../shared/rows.js';
import { factsOf, levelOf, offerOf, relayTrouble, sourceText, stateText } from './nodes.js';
import { make, makeCard } from './parts.js';
import { keyOf } from './state.js';

/** @typedef {import('./state.js').State} State */
/** @typedef {import('./state.js').ClusterNode} ClusterNode */
/** @typedef {import('./state.js').NodeAct} NodeAct */
/** @typedef {import('./strings.js').Strings['admin']} Words */

export class NodesView {
  #words;
  #language;
  #ask;
  #dialog = byId('question', HTMLDialogElement);
  /** @type {NodeAct | null} the last question */
  #question = null;

  /** @param {Words} words @param {string} language @param {(act: NodeAct) => void} ask @param {(yes: boolean) => void} answer */
  constructor(words, language, ask, answer) {
    this.#words = words;
    this.#language = language;
    this.#ask = ask;
    button('question-yes').addEventListener('click', () => answer(true));
    button('question-no').addEventListener('click', () => answer(false));
    this.#dialog.addEventListener('close', () => {
      // The event comes some time after the closing. By then, the next question may be open.
      if (this.#dialog.open) return;
      answer(false);
      this.#focusRow();
    });
  }

  /** @param {State} state */
  render({ nodes, question, busy }) {
    this.#renderQuestion(question);
    if (!nodes) return;
    setText(box('nodes-source'), sourceText(nodes, this.#words));
    showRows(box('node-rows'), nodes.nodes.map((node) => ({ ...node, isAsked: node.node === nodes.asked })), ({ node }) => node, (node) => this.#fill(node), (row, { node }) => {
      setAttribute(row, 'data-busy', busy.includes(keyOf({ kind: 'node', node, state: 'draining' })) ? 'yes' : null);
    });
  }

  /** @param {ClusterNode & {isAsked: boolean}} node @returns {HTMLElement[]} */
  #fill(node) {
    const words = this.#words;
    const card = makeCard(words.node(node.node), node.isAsked ? words.askedNode : '');
    card.tag(stateText(node, words), levelOf(node.state));
    if (node.requested) card.tag(words.requested[node.requested], 'fair');
    const facts = make('dl', 'facts');
    for (const [name, value] of factsOf(node, words, this.#language)) facts.append(make('dt', '', name), make('dd', '', value));
    card.add(facts);
    const trouble = relayTrouble(node, words);
    if (trouble) card.add(make('p', 'trouble', trouble));
    const offer = offerOf(node);
    if (!offer) return card.parts;
    const actions = make('div', 'actions');
    // One `does` for both, so that the focus stays when the one replaces the other.
    actions.append(rowButton({ does: 'change', text: words.change[offer], label: words.changeNode[offer](node.node), className: 'button' }, () => {
      this.#ask({ kind: 'node', node: node.node, state: offer });
    }));
    card.add(actions);
    return card.parts;
  }

  /** @param {NodeAct | null} question */
  #renderQuestion(question) {
    if (!question) {
      if (this.#dialog.open) this.#dialog.close();
      return;
    }
    this.#question = question;
    setText(box('question-text'), this.#words.questions[question.state](question.node));
    setText(button('question-yes'), this.#words.change[question.state]);
    setAttribute(button('question-yes'), 'class', question.state === 'draining' ? 'button danger' : 'button primary');
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** The row may have been drawn again while the dialog was open, so the browser cannot return the focus to its button. */
  #focusRow() {
    if (document.activeElement !== document.body) return;
    const row = [...box('node-rows').children].find((element) => /** @type {HTMLElement} */ (element).dataset.key === this.#question?.node);
    const target = /** @type {HTMLElement | null | undefined} */ (row?.querySelector('[data-do="change"]'));
    (target ?? button('tab-nodes')).focus();
  }
}
