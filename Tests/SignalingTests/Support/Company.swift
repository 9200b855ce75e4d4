import Signaling
import Wire

/// Three who have appeared, with empty inboxes.
struct Company {
    let stage = Stage()
    let ada: Guest
    let bob: Guest
    let eve: Guest

    init() {
        ada = stage.present("Ada")
        bob = stage.present("Bob")
        eve = stage.present("Eve")
    }
}

/// A suite about three who call each other, by their names.
protocol InCompany {
    var company: Company { get }
}

extension InCompany {
    var stage: Stage { company.stage }
    var ada: Guest { company.ada }
    var bob: Guest { company.bob }
    var eve: Guest { company.eve }
}

/// Two in a session whose media the server routes.
struct RoutedRoom {
    let stage = Stage { $0.routesMedia = true }
    let session: SessionID
    let ada: Guest
    let bob: Guest
    let mids = MediaMids(audio: "0", video: "1")

    init() {
        session = stage.room(.routed)
        (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        ada.take()
    }
}

/// A suite about what the two there publish and subscribe to.
protocol InRoutedRoom {
    var room: RoutedRoom { get }
}

extension InRoutedRoom {
    var stage: Stage { room.stage }
    var session: SessionID { room.session }
    var ada: Guest { room.ada }
    var bob: Guest { room.bob }
    var mids: MediaMids { room.mids }
}
