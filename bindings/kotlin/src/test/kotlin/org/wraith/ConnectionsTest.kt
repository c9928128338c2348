package org.wraith

import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.time.Duration

/** Services and raw connections between two nodes of this process. */
class ConnectionsTest {
    private val options = ConnectOptions(timeout = Duration.ofSeconds(1))

    /** Both ends of a connection, and of a stream on which the opening side has written one byte. */
    private class Connected(val service: Service, val ends: List<Connection>, val streams: List<ConnectionStream>)

    private suspend fun connected(): Connected = coroutineScope {
        val service = newNode().serve(Callers.Ticket, ServiceOptions())
        val accepting = async { service.accept()!! }
        val opened = newNode().connect(ServiceAddress.Source(service.ticket()!!), options)
        val stream = opened.openStream()
        stream.write("x".toByteArray())
        val accepted = accepting.await()
        Connected(service, listOf(accepted, opened), listOf(accepted.acceptStream(), stream))
    }

    @Test
    fun `bytes go both ways and the end is no error`() = within {
        val (reads, writes) = connected().streams
        writes.write("hello".toByteArray())
        writes.finish()
        assertEquals("x", reads.read(1uL).decodeToString())
        assertEquals("hello", reads.readToEnd(5uL).decodeToString())
        assertArrayEquals(ByteArray(0), reads.read(5uL))
        writes.acked()
        reads.write("thanks".toByteArray())
        reads.finish()
        assertEquals("thanks", writes.readToEnd(6uL).decodeToString())
    }

    @Test
    fun `each failure has a type with its code`() = within {
        val connected = connected()
        val (reads, writes) = connected.streams
        assertEquals("x", reads.read(9uL).decodeToString())
        writes.reset(0x1234567890uL)
        assertEquals(0x1234567890uL, failure<TransportException.Reset> { reads.read(9uL) }.code)
        failure<TransportException.Ended> { writes.write(ByteArray(1)) }
        writes.stop(0x155uL)
        val stopped = failure<TransportException.Stopped> { while (true) reads.write(ByteArray(1 shl 20)) }
        assertEquals(0x155uL, stopped.code)
        failure<TransportException.TooLong> { connected.ends[0].sendDatagram(ByteArray(100_000)) }
        connected.ends[1].closeWith(0x166uL, "enough")
        val closed = failure<TransportException.Closed> { connected.ends[0].readDatagram() }
        assertEquals(CloseReason(CloseCause.BY_PEER, 0x166uL, "enough"), closed.reason)
        assertEquals(closed.reason, connected.ends[0].closed())
        assertEquals(CloseCause.HERE, connected.ends[1].closed().cause)
    }

    @Test
    fun `a cancelled read loses no byte`() = within {
        val (reads, writes) = connected().streams
        val waiting = async(start = CoroutineStart.UNDISPATCHED) { reads.readToEnd(100uL) }
        delay(50)
        waiting.cancelAndJoin()
        writes.write("12345".toByteArray())
        writes.finish()
        failure<TransportException.TooLong> { reads.readToEnd(5uL) }
        assertEquals("x12345", reads.readToEnd(6uL).decodeToString())
    }

    @Test
    fun `a contact is found by the name of its service`() = within {
        val (anna, bob) = newNode() to newNode()
        bob.addContact(Contact("anna", anna.nodeId()))
        val service = bob.serve(Callers.Contacts("echo"), ServiceOptions())
        // It listens on all addresses.
        val address = "127.0.0.1:" + service.address().substringAfterLast(':')
        anna.addContact(Contact("bob", bob.nodeId(), listOf(address)))
        val accepting = async { service.accept()!! }
        val caller = anna.connect(ServiceAddress.Contact("bob", "echo"), options)
        assertEquals(anna.nodeId(), accepting.await().peer())
        assertEquals(bob.nodeId(), caller.peer())
        failure<WraithException.NotFound> { anna.connect(ServiceAddress.Contact("bob", "time"), options) }
    }

    @Test
    fun `a shutdown ends the calls that wait for callers`() = within {
        val service = newNode().serve(Callers.Ticket, ServiceOptions())
        val waiting = List(2) { async(start = CoroutineStart.UNDISPATCHED) { service.accept() } }
        service.shutdown()
        assertEquals(listOf(null, null), waiting.awaitAll())
        assertNull(service.accept())
        val gone = ServiceAddress.Source(service.ticket()!!)
        failure<WraithException.NotFound> { newNode().connect(gone, options) }
    }

    @Test
    fun `objects are freed in any order`() = within {
        for (first in 0..2) {
            val connected = connected()
            val (service, end, stream) = Triple(connected.service, connected.ends[0], connected.streams[0])
            stream.write("last".toByteArray())
            stream.finish()
            assertEquals("x", stream.read(9uL).decodeToString())
            val all = listOf<AutoCloseable>(service, end, stream)
            for (at in 0..2) all[(first + at) % 3].close()
            assertEquals("last", connected.streams[1].readToEnd(4uL).decodeToString())
            assertEquals(CloseCause.BY_PEER, connected.ends[1].closed().cause)
            assertTrue(failure<IllegalStateException> { stream.finish() }.message!!.isNotEmpty())
        }
    }
}
