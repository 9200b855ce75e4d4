// Notices about recordings of a session.

/// How the streams of an archive become files.
public enum ArchiveOutput: String, Hashable, Sendable, CaseIterable {
    /// One file of all streams.
    case composed
    /// One file for each stream.
    case individual
}

/// An archive into which a session is recorded.
public struct ArchiveInfo: Payload {
    /// The archive's id.
    public var archive = ArchiveID(high: 0, low: 0)
    /// The archive's name, at most 80 characters; nil if it has none.
    public var name: String?
    /// True if only the streams of members who accepted with ``SessionVerb/consent(_:)`` are recorded; otherwise nil.
    public var asks: Bool?
    public init() {}
    public init(_ archive: ArchiveID, name: String? = nil, asks: Bool? = nil) {
        (self.archive, self.name, self.asks) = (archive, name, asks)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("archiveId", &archive)
        try coder.string("name", &name, max: Limits.archiveName)
        try coder.bool("consent", &asks)
    }
}

extension SessionNotice {
    /// An archive that is about to record a session. The server sends this before it records anything.
    public struct ArchiveStarted: Payload {
        /// The id of the session that is recorded.
        public var session = SessionID.unset
        /// The archive. Its members are those of the message.
        public var archive = ArchiveInfo()
        public init() {}
        public init(session: SessionID, _ archive: ArchiveInfo) { (self.session, self.archive) = (session, archive) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try archive.fields(&coder)
        }
    }

    /// The end of a recording. The session may still be recorded into other archives.
    public struct ArchiveStopped: Payload {
        /// The id of the session.
        public var session = SessionID.unset
        /// The id of the archive that has stopped.
        public var archive = ArchiveID(high: 0, low: 0)
        public init() {}
        public init(session: SessionID, archive: ArchiveID) { (self.session, self.archive) = (session, archive) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("archiveId", &archive)
        }
    }
}
