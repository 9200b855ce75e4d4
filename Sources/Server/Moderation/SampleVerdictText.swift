import Signaling
import Wire

/// The operator's program answered with something that is no verdict.
struct InvalidVerdict: Error, Equatable {
    /// What is wrong, for the log. It contains nothing of the answer, which may be of any length and content.
    let reason: String
}

/// Reads the answers of the operator's program: `{"id": 7, "verdict": "blur", "text": "…"}` ([moderation.md](../../../docs/moderation.md)).
enum SampleVerdictText {
    /// Maximum length of an answer in bytes.
    static let maxSize = 4096

    /// Reads an answer. Other members are ignored.
    ///
    /// - Parameter number: the number of the question, which the answer must have as `id`; nil if it need not have one.
    static func parse(_ bytes: some Collection<UInt8>, to number: UInt64?) throws(InvalidVerdict) -> SampleJudgment {
        guard bytes.count <= maxSize, case .object(let answer)? = try? JSONReader.parse(bytes) else {
            throw InvalidVerdict(reason: "the answer is not a JSON object of at most \(maxSize) bytes")
        }
        if let number {
            guard case .integer(let id)? = answer["id"], UInt64(exactly: id) == number else {
                throw InvalidVerdict(reason: "\"id\" must be the number of the question")
            }
        }
        guard case .string(let name)? = answer["verdict"], let verdict = SampleVerdict(rawValue: name) else {
            let names = SampleVerdict.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw InvalidVerdict(reason: "\"verdict\" must be one of \(names)")
        }
        switch answer["text"] {
        case nil: return SampleJudgment(verdict)
        case .string(let text)? where text.utf8.count <= Limits.warning:
            return SampleJudgment(verdict, text: text.isEmpty ? nil : text.withoutNUL)
        default: throw InvalidVerdict(reason: "\"text\" must be a string of at most \(Limits.warning) bytes")
        }
    }
}
