import Testing

@Suite("The mutator")
struct MutatorTests {
    @Test("is deterministic for a seed and number")
    func isRepeatable() {
        let mutator = Mutator(.json, seed: 7)
        let inputs = (0..<200).map(mutator.input)
        #expect(inputs == (0..<200).map(Mutator(.json, seed: 7).input))
        #expect(Set(inputs).count > 150)
        #expect(inputs != (0..<200).map(Mutator(.json, seed: 8).input))
    }

    @Test("respects a target's maximum input length")
    func staysWithinTheLongestInput() {
        for target in FuzzTarget.all {
            let mutator = Mutator(target, seed: 1)
            #expect((0..<100).allSatisfy { mutator.input($0).count <= target.longestInput }, "\(target.name)")
        }
    }

    @Test("reads the fuzzer's dictionaries")
    func readsDictionaries() {
        #expect(FuzzDictionary.word(inLine: Array(#"quoted="a\"b\\\x0aC" # rest"#.utf8)) == Array("a\"b\\\nC".utf8))
        #expect(FuzzDictionary.word(inLine: Array("# only a comment with \"quotes\"".utf8)) == nil)
        for name in Set(FuzzTarget.all.compactMap(\.dictionary)) {
            #expect(!FuzzDictionary.words(name).isEmpty, "\(name).dict has no words")
        }
    }
}
