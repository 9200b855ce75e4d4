// Tests the check of types that need each other.
import assert from 'node:assert/strict';
import test from 'node:test';
import { bare, climbs, cycles, references } from '../../../scripts/cycles.mjs';

const groups = (files) => cycles(references(new Map(Object.entries(files))));

test('types that name each other are a cycle, also through extensions in other files', () => {
  assert.deepEqual(groups({
    'A.swift': 'struct A { var b: B }\nstruct B {}\nstruct Alone { var a: A }',
    'B.swift': 'extension B {\n    func c() { C.make() }\n}\nenum C { static func make(_ a: A) {} }',
  }), [['A', 'B', 'C']]);
});

test('a nested type counts as the type around it, and hides other types with its name', () => {
  assert.deepEqual(groups({
    'A.swift': 'struct A {\n    struct Part { var b: B }\n    var part: Part\n}',
    'B.swift': 'struct B { var a: A.Part }\nstruct Part { var a: A }',
  }), [['A', 'B']]);
});

test('comments and texts name nothing, but what is interpolated does', () => {
  assert.deepEqual(groups({ 'A.swift': 'struct A { // B\n    let text = "B"\n}\nstruct B { var a: A }' }), []);
  assert.deepEqual(groups({ 'A.swift': 'struct A {\n    let text = "a \\(B.text) b"\n}\nstruct B { var a: A }' }), [['A', 'B']]);
  assert.equal(bare('let a = "{" // }\nlet b = 1').includes('{'), false);
});

test('a file names only types of its own floor and those below', () => {
  const sources = new Map([
    ['Letters/Letter.swift', 'struct Letter {}\nextension Letter { func go(_ hub: Hub) {} }'],
    ['Rules.swift', 'struct Rules { var letter: Letter }'], ['Hub/Hub.swift', 'struct Hub { var rules: Rules }'],
    ['New/New.swift', 'struct New {}'],
  ]);
  assert.deepEqual(climbs(sources, [['Letters'], ['.'], ['Hub']]), [
    'Letters/Letter.swift:2 names Hub, which is on a higher floor.', 'New/New.swift is on no floor.',
  ]);
});
