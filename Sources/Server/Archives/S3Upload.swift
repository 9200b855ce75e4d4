import Signaling
import Wire

/// An upload of one object to S3 in parts, as a state machine: answers in, requests out. It is resumed from its ``Progress``.
///
/// It begins with a question for the object: an earlier run may have uploaded it, and stopped before it knew. It ends when the
/// bucket has confirmed the size. A part can be sent again without harm, and so can the request that completes the upload.
struct S3Upload: Equatable, Sendable {
    /// What a restart needs to continue.
    struct Progress: Equatable, Sendable, Payload {
        /// The service's id of the upload.
        var upload = ""
        /// The size of the object in bytes.
        var size: UInt64 = 0
        /// The size of all parts but the last in bytes.
        var partSize: Int64 = 0
        /// The service's tags of the parts that it has, in their order.
        var tags: [String] = []

        mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("upload", &upload, max: S3Upload.maxText)
            var size = Int64(clamping: size)
            try coder.integer("size", &size, in: 0...Int64.max)
            self.size = UInt64(clamping: size)
            try coder.integer("partSize", &partSize, in: 1...Int64(1) << 40)
            var tags: [String]? = tags
            try coder.strings("tags", &tags, max: S3Upload.maxText, count: S3Upload.maxParts)
            self.tags = tags ?? []
        }
    }

    /// What to send to the service.
    enum Request: Equatable, Sendable {
        /// Asks for the object's size.
        case size
        /// Begins an upload.
        case create
        /// Sends a part, which has this number from 1 on.
        case part(Int, of: String, Range<UInt64>)
        /// Makes the object of the parts with these tags.
        case complete(String, tags: [String])
    }

    /// What the service answered.
    enum Answer: Equatable, Sendable {
        /// The size of the object; nil if there is none.
        case size(UInt64?)
        /// The upload has this id.
        case created(String)
        /// The part is stored, and has this tag.
        case stored(tag: String)
        /// The object was made. The service may still report another size.
        case completed
        /// The service does not know the upload or one of its parts, for example because it deletes unfinished uploads after some
        /// days, or because the upload is complete.
        case unknownUpload
    }

    /// What follows an answer.
    enum Step: Equatable, Sendable {
        /// Sends this request.
        case send(Request)
        /// The object is complete.
        case done
        /// The upload cannot succeed, for this reason.
        case failed(String)
    }

    /// S3 accepts parts of at least 5 MiB, except the last one, and at most 10,000 of them. A part is in memory while it is sent.
    static let usualPartSize: Int64 = 16 << 20
    static let maxParts = 10_000
    fileprivate static let maxText = 2_048

    private let size: UInt64
    private(set) var progress: Progress?
    private var hasBegunAgain = false
    private var isComplete = false

    init(size: UInt64, progress: Progress? = nil, partSize: Int64 = usualPartSize) {
        self.size = size
        let least = (Int64(clamping: size) + Int64(Self.maxParts) - 1) / Int64(Self.maxParts)
        self.partSize = max(partSize, least)
        // A computed ZIP file of another version of the server may have another size. Then the parts do not fit together.
        self.progress = progress?.size == size ? progress : nil
    }

    private let partSize: Int64

    var first: Request { .size }

    mutating func handle(_ answer: Answer) -> Step {
        switch answer {
        case .size(size): return .done
        case .size(let found):
            guard !isComplete else {
                return .failed(
                    "the bucket has \(found.map { "\($0) bytes" } ?? "no object") instead of \(size) bytes")
            }
        case .created(let upload): progress = Progress(upload: upload, size: size, partSize: partSize)
        case .stored(let tag): progress?.tags.append(tag)
        case .completed:
            (isComplete, progress) = (true, nil)
            return .send(.size)
        case .unknownUpload:
            guard !hasBegunAgain else { return .failed("the service forgets the upload") }
            (hasBegunAgain, progress) = (true, nil)
            // The upload may be complete: then only the response to an earlier request was lost.
            return .send(.size)
        }
        return .send(next)
    }

    private var next: Request {
        guard let progress else { return .create }
        let start = UInt64(clamping: progress.partSize) * UInt64(progress.tags.count)
        guard start < size else { return .complete(progress.upload, tags: progress.tags) }
        return .part(
            progress.tags.count + 1, of: progress.upload,
            start..<min(size, start + UInt64(clamping: progress.partSize)))
    }
}
