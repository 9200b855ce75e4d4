// Expect: in a synchronous nonisolated context
import OpenTokShapes

func leave(_ session: OTSession) { session.disconnect(nil) }
